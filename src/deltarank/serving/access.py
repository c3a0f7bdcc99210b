"""Who is answered: requests for a host that is ours, from those who have the token."""

import hmac
import re
from base64 import b64decode
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import ip_address
from typing import Any

from fastapi.responses import JSONResponse

from deltarank.core.caching import cached_property

LOOPBACK = ("localhost", "127.0.0.1", "::1")
ANY_HOST = "*"
# Says nothing of the model, and those who watch over servers know neither its name nor its token.
OPEN_PATHS = frozenset({"/health"})
# Basic, with the token as password, is what lets people open the page: browsers ask for it.
CHALLENGE = 'Basic realm="DeltaRank", charset="UTF-8", Bearer realm="DeltaRank"'
_TOKEN = re.compile("[!-~]+")
_NAME_SHOWN = 100


@dataclass(frozen=True)
class Access:
    """Whom a server answers; by default everybody, by any name.

    Parameters
    ----------
    hosts : tuple of str
        Names and addresses by which the server is known. A page of somebody else whose name is
        made to point here (DNS rebinding) asks for a host that is not among them. ``"*"`` is any
        host; ``"0.0.0.0"`` and ``"::"`` are any address in numbers, which no page can be made of.
    token : str or None
        What requests must have, as ``Authorization: Bearer TOKEN`` or as the password of a
        browser.

    Examples
    --------
    >>> access = Access(hosts=("localhost", "0.0.0.0"), token="open-sesame")
    >>> [access.is_known(host) for host in ("localhost:8000", "192.168.1.7", "elsewhere.example")]
    [True, True, False]
    >>> access.is_granted("Bearer open-sesame"), access.is_granted("Bearer open")
    (True, False)
    """

    hosts: tuple[str, ...] = (ANY_HOST,)
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.token is not None and not _TOKEN.fullmatch(self.token):
            raise ValueError(
                "the token must be one or more printable ASCII characters without spaces"
            )

    def is_known(self, host: str) -> bool:
        """Tell whether a Host header is one of the hosts, whatever the port."""
        if ANY_HOST in self._known:
            return True
        name = _plain(_without_port(host))
        any_address = bool(self._known & {"0.0.0.0", "::"}) and _is_address(name)
        return name in self._known or any_address

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(map(_plain, self.hosts))

    def is_granted(self, authorization: str) -> bool:
        """Tell whether an Authorization header holds the token, in a time that tells no more."""
        if self.token is None:
            return True
        scheme, _, offered_token = authorization.strip().partition(" ")
        if scheme.lower() == "basic":
            offered_token = _password(offered_token.strip())
        elif scheme.lower() != "bearer":
            return False
        # Digests, because a comparison in constant time still tells whether lengths agree.
        wanted, offered = (
            sha256(text.encode()).digest() for text in (self.token, offered_token.strip())
        )
        return hmac.compare_digest(wanted, offered)


class Guard:
    """Refuses requests that are not for this server, or come without its token, unread."""

    def __init__(self, app: Any, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request as ASGI has it."""
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, scope: Any) -> JSONResponse | None:
        if scope["path"] in OPEN_PATHS:
            return None
        hosts, granted = (_values(scope, name) for name in (b"host", b"authorization"))
        # None at all is for old programs; browsers, which could be misled, always name one host.
        if not all(map(self._access.is_known, hosts or [""])):
            problem = (
                f"this server does not answer for the host {hosts[0][:_NAME_SHOWN]!r}; "
                "allow it by --allow-host"
                if hosts
                else "the request names no host"
            )
            return JSONResponse({"detail": problem}, 421, {"connection": "close"})
        if not self._access.is_granted(granted[0] if len(granted) == 1 else ""):
            problem = "a token is wanted: send the header 'Authorization: Bearer TOKEN'"
            headers = {"connection": "close", "www-authenticate": CHALLENGE}
            return JSONResponse({"detail": problem}, 401, headers)
        return None


def _values(scope: Any, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _without_port(host: str) -> str:
    host = host.strip()
    return host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]


def _plain(host: str) -> str:
    """Return a host in the one way of writing it by which hosts are compared."""
    name = host.strip("[]").lower().removesuffix(".")
    return ip_address(name).compressed if _is_address(name) else name


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _password(credentials: str) -> str:
    try:
        return b64decode(credentials, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""
