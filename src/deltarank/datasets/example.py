"""A made-up table to try things on: recipes with a description, a time, a season and tags.

Tags follow from what is in the dish, but for a few that people forget, or add by mistake.
"""

import random
from typing import Any

_DISHES = {
    "soup": ("soup",),
    "stew": ("comfort",),
    "salad": ("salad",),
    "curry": ("spicy",),
    "gratin": ("baking", "comfort"),
    "pie": ("baking",),
    "cake": ("baking", "sweet"),
    "pudding": ("sweet", "comfort"),
    "omelette": (),
    "noodles": (),
}
_SAVOURY = {
    "lentils": (), "carrots": (), "potatoes": (), "spinach": (), "mushrooms": (), "tomatoes": (),
    "pumpkin": (), "chickpeas": (), "tofu": (), "ginger": (), "chili": ("spicy",),
    "cream": ("dairy",), "cheese": ("dairy",), "eggs": ("egg",), "chicken": ("meat",),
    "bacon": ("meat",), "salmon": ("fish",), "cod": ("fish",), "shrimps": ("fish",),
}  # fmt: skip
_SWEET = {
    "apples": (), "plums": (), "almonds": (), "oats": (), "dates": (), "cinnamon": (), "lemon": (),
    "chocolate": (), "honey": ("dairy",), "butter": ("dairy",), "cream": ("dairy",),
    "eggs": ("egg",),
}  # fmt: skip
_MANNERS = ("a simple", "an old", "a light", "a hearty", "my favourite", "a colourful")
_ENDINGS = {
    "for a crowd": "party",
    "for the whole family": "comfort",
    "ready in no time": "quick",
    "with fresh herbs": None,
    "served with bread": None,
    "as my grandmother made it": None,
}
_SEASONS = ("spring", "summer", "autumn", "winter")
_NOT_VEGETARIAN = {"meat", "fish"}
_NOT_VEGAN = {"meat", "fish", "dairy", "egg"}
_SHOWN = ("baking", "comfort", "fish", "party", "quick", "salad", "soup", "spicy", "sweet")
FORGOTTEN, MISTAKEN = 0.06, 0.01


def example_rows(n_rows: int = 400, seed: int = 0) -> list[dict[str, Any]]:
    """Return the rows of a table of recipes, made up; a seed gives the same rows everywhere.

    Examples
    --------
    >>> row = example_rows(1, seed=4)[0]
    >>> list(row)
    ['description', 'minutes', 'season', 'tags']
    >>> row["description"]
    'a simple salad of chickpeas and potatoes, ready in no time'
    >>> row["tags"]
    'quick, salad, vegan, vegetarian'
    """
    # Only this method of the generator promises the same numbers in every release of Python.
    chance = random.Random(seed).random
    return [_recipe(chance) for _ in range(n_rows)]


def _recipe(chance: Any) -> dict[str, Any]:
    dish = _pick(chance, list(_DISHES))
    sweet = "sweet" in _DISHES[dish]
    shelf = _SWEET if sweet else _SAVOURY
    left = list(shelf)
    used = [left.pop(int(chance() * len(left))) for _ in range(2 + int(2 * chance()))]
    manner, ending = _pick(chance, _MANNERS), _pick(chance, list(_ENDINGS))
    season = _pick(chance, _SEASONS)
    minutes = 5 * (2 + int(6 * chance()))
    traits = {trait for item in used for trait in shelf[item]} | set(_DISHES[dish])
    if dish == "omelette":
        traits.add("egg")
    if "baking" in traits or dish == "stew":
        minutes += 30
    if _ENDINGS[ending] == "quick":
        minutes = min(minutes, 20)
    if season == "winter" and dish in ("soup", "curry"):
        traits.add("comfort")
    if minutes <= 20:
        traits.add("quick")
    if (extra := _ENDINGS[ending]) is not None:
        traits.add(extra)
    *some, last = used
    return {
        "description": f"{manner} {dish} of {', '.join(some)} and {last}, {ending}",
        "minutes": minutes,
        "season": season,
        "tags": ", ".join(_tags(traits, chance)),
    }


def _tags(traits: set[str], chance: Any) -> list[str]:
    tags = {tag for tag in _SHOWN if tag in traits}
    if not traits & _NOT_VEGAN:
        tags.add("vegan")
    if not traits & _NOT_VEGETARIAN:
        tags.add("vegetarian")
    noted = []
    for tag in (*_SHOWN, "vegan", "vegetarian"):
        luck = chance()
        if luck >= FORGOTTEN if tag in tags else luck < MISTAKEN:
            noted.append(tag)
    return noted


def _pick(chance: Any, values: Any) -> Any:
    return values[int(chance() * len(values))]
