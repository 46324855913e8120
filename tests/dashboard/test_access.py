"""Who may ask: this machine's own pages, or those who have the token."""

import socket
from pathlib import Path

import pytest
from served import Serve
from shown_runs import write_run

from holter.dashboard.access import COOKIE, Access, RefusedError

HOST = {"host": "localhost:8770"}


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8770", "127.0.0.1:9", "[::1]:8770", "127.0.0.1", "LOCALHOST"]
)
def test_loopback_names_are_answered(host: str) -> None:
    Access.for_host("127.0.0.1").require({"host": host})


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "evil.example:8770", "localhost.evil.example", "10.0.0.1", "[::", "::1]"],
)
def test_a_foreign_host_is_refused(host: str) -> None:
    with pytest.raises(RefusedError):
        Access.for_host("127.0.0.1").require({"host": host})


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://localhost:9999", "http://localhost.evil.example:8770"],
)
def test_a_foreign_origin_is_refused(origin: str) -> None:
    access = Access.for_host("127.0.0.1")
    access.require({**HOST, "origin": "http://localhost:8770"})
    with pytest.raises(RefusedError):
        access.require({**HOST, "origin": origin})


def test_another_site_may_link_but_not_embed() -> None:
    access = Access.for_host("127.0.0.1")
    foreign = {**HOST, "sec-fetch-site": "cross-site"}
    access.require({**foreign, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"})
    for mode, kind in (("no-cors", "image"), ("no-cors", "script"), ("cors", "empty")):
        with pytest.raises(RefusedError):
            access.require({**foreign, "sec-fetch-mode": mode, "sec-fetch-dest": kind})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "training.example"])
def test_beyond_loopback_there_is_a_token(host: str) -> None:
    access = Access.for_host(host)
    assert access.token is not None
    assert len(access.token) >= 32
    assert access.knows(access.token)
    assert not access.knows(None)
    assert not access.knows("")
    assert Access.for_host(host).token != access.token


def test_on_loopback_there_is_none_unless_asked_for() -> None:
    assert Access.for_host("127.0.0.1").token is None
    assert Access.for_host("::1").token is None
    assert Access.for_host("localhost", token=True).token is not None


def test_the_server_refuses_foreign_host_and_origin(serve: Serve, tmp_path: Path) -> None:
    served = serve(tmp_path)
    assert served.get("/api/runs").status == 200
    assert served.get("/api/runs", Host="evil.example").status == 403
    assert served.get("/api/runs", Origin="http://evil.example").status == 403
    assert served.get("/api/runs", oRIGIN="http://evil.example").status == 403
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert served.get("/api/runs", method=method).status == 501


def test_every_answer_has_the_policy(serve: Serve, tmp_path: Path) -> None:
    served = serve(tmp_path)
    for path in ("/", "/rules", "/api/runs", "/nowhere", "/assets/runs.js"):
        headers = served.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_the_token_is_exchanged_for_a_cookie(serve: Serve, tmp_path: Path) -> None:
    served = serve(tmp_path, token=True)
    token = served.server.access.token
    assert served.get("/").status == 401
    assert served.get("/?token=wrong").status == 401
    assert served.get("/assets/runs.js").status == 401
    first = served.get(f"/?token={token}")
    assert first.status == 303
    assert first.headers["Location"] == "/"
    cookie = first.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert served.get("/", Cookie=cookie.partition(";")[0]).status == 200
    assert served.get("/", Cookie=f"{COOKIE}=wrong").status == 401
    assert token in served.address("/")


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/assets/../server.py",
        "/assets/..%2f..%2fserver.py",
        "/assets/%2e%2e/site.py",
        "/runs/../../secret.txt",
        "/api/runs/..%2fsecret.txt/report",
        "/api/runs/%2fetc%2fpasswd/report",
        "//etc/passwd",
        "/rules/..%2f..%2fetc",
        "/api/runs/" + "a" * 3000 + "/report",
    ],
)
def test_nothing_outside_is_served(serve: Serve, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.txt").write_text("the secret")
    (tmp_path / "runs").mkdir()
    write_run(tmp_path / "runs" / "one", [1.0, 0.5])
    answer = serve(tmp_path / "runs").get(path)
    assert answer.status == 404
    assert b"secret" not in answer.body
    assert b"root:" not in answer.body
    assert b"import" not in answer.body


@pytest.mark.parametrize(
    "sent", [b"GARBAGE\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /\x00 HTTP/1.1\r\n\r\n"]
)
def test_malformed_requests_do_not_stop_the_server(
    serve: Serve, tmp_path: Path, sent: bytes
) -> None:
    served = serve(tmp_path)
    with socket.create_connection(("127.0.0.1", served.server.port), timeout=10) as raw:
        raw.sendall(sent)
        raw.recv(1000)
    assert served.get("/").status == 200
