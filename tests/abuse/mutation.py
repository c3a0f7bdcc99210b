"""Damage to bytes: what a bad disk, a cut connection or an ill-meaning person does to a file."""

# What readers may stumble over where they wait for a number, a name or a separator.
NASTY = [
    b"nan", b"inf", b"-0", b"1e999", b"1e-999", b"1_0", b"0x10", b"99999999999999999999", b"-1",
    b"2147483648", b".", b"+", b"e", b"?", b"", b" ", b"\t", b"\r", b"\n", b"\r\n", b"\n\n", b"\0",
    b",", b";", b":", b"|", b'"', b"'", b"{", b"}", b"[]", b"null", b"%", b"#", b"\\", b"@data",
    b"\xef\xbb\xbf", b"\xff", "é".encode(), "１".encode(), "\u2028".encode(), b"9" * 400,
]  # fmt: skip


def flip(content, rng):
    """Change some bytes."""
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        content[rng.randrange(len(content))] ^= rng.randrange(1, 256)


def cut(content, rng):
    """Lose the end."""
    del content[rng.randrange(len(content)) :]


def lose(content, rng):
    """Lose a piece in the middle."""
    del content[slice(*_piece(content, rng))]


def extend(content, rng):
    """Get more at the end."""
    content += rng.randbytes(rng.randrange(1, 40))


def zero(content, rng):
    """Turn a piece into zeros, as a lost sector does."""
    first, last = _piece(content, rng)
    content[first:last] = bytes(last - first)


def repeat(content, rng):
    """Get a piece twice."""
    first, last = _piece(content, rng)
    content[first:first] = content[first:last]


def swap(content, rng):
    """Put a piece where it does not belong."""
    first, last = _piece(content, rng)
    piece = content[first:last]
    del content[first:last]
    at = rng.randrange(len(content) + 1)
    content[at:at] = piece


def insert(content, rng):
    """Insert something nasty."""
    at = rng.randrange(len(content) + 1)
    content[at : at + rng.choice([0, 0, 1, 3])] = rng.choice(NASTY)


BINARY = (flip, cut, lose, extend, zero, repeat, swap)
TEXT = (flip, lose, repeat, swap, insert, insert, insert, cut, extend, zero)


def damaged(content, rng, kinds, most=1):
    """Return bytes that were damaged once or more."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, most)):
        if changed:
            rng.choice(kinds)(changed, rng)
    return bytes(changed)


def _piece(content, rng):
    first = rng.randrange(len(content))
    return first, min(len(content), first + rng.choice([1, 2, 5, 20, 100]))
