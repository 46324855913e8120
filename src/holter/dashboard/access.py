"""Who may ask the server, and the headers that every answer carries."""

import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

COOKIE = "holter-token"

_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
)


class RefusedError(Exception):
    """The request may not be answered; the message says why, in one sentence."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may read from a server that is bound to `host`.

    On loopback everyone on this machine may, unless a token is asked for; a page of another site
    may not: its requests carry a foreign Host (DNS rebinding) or a foreign Origin.
    """

    host: str
    token: str | None = None
    framed: bool = False  # pages may be shown inside a notebook on this machine
    headers: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        ancestors = "http://localhost:* http://127.0.0.1:*" if self.framed else "'none'"
        policy = "; ".join((*_POLICY, f"frame-ancestors {ancestors}"))
        headers = {
            "Content-Security-Policy": policy,
            "Cache-Control": "no-store",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        object.__setattr__(self, "headers", headers)

    @classmethod
    def for_host(cls, host: str, *, token: bool = False, framed: bool = False) -> "Access":
        """Return the access for a bind address: beyond loopback, and on request, with a token."""
        needs_token = token or not is_loopback(host)
        return cls(host, secrets.token_urlsafe(24) if needs_token else None, framed)

    def require(self, headers: Mapping[str, str]) -> None:
        """Raise `RefusedError` unless Host and Origin are this server's own.

        The names of headers are in lower case.
        """
        host = headers.get("host", "")
        name = _hostname(f"//{host}")
        if name is None or (self.token is None and not is_loopback(name)):
            raise RefusedError("This server answers only requests for localhost.")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise RefusedError("This server answers only its own pages.")
        if headers.get("sec-fetch-site") == "cross-site" and not _opens_a_page(headers):
            raise RefusedError("This server answers only its own pages.")

    def knows(self, given: str | None) -> bool:
        """Return whether `given` is the token, compared in constant time."""
        if self.token is None:
            return True
        return given is not None and hmac.compare_digest(given.encode(), self.token.encode())

    def cookie(self) -> str:
        """Return the cookie that replaces the token in the address."""
        return f"{COOKIE}={self.token}; Path=/; HttpOnly; SameSite=Strict"


def token_of(headers: Mapping[str, str]) -> str | None:
    """Return the token that the browser sends back."""
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if morsel is None else morsel.value


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _hostname(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def _opens_a_page(headers: Mapping[str, str]) -> bool:
    """Return whether the request follows a link, which shows nothing to the page with the link."""
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") in (
        "document",
        "iframe",
    )
