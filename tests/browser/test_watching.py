"""The watch over every visit sees what it is there for; and the browser itself forbids the page to speak with anybody else."""

import pytest

from tests.browser.visiting import Visit, executable

ELSEWHERE = "http://elsewhere.example"
WAYS_OUT = {
    "a request": f"fetch('{ELSEWHERE}/').catch(() => 0)",
    "a beacon": f"navigator.sendBeacon('{ELSEWHERE}/', 'x')",
    "a picture": f"new Promise((done) => {{ const it = new Image(); it.onerror = done; it.src = '{ELSEWHERE}/x.png'; }})",
    "a socket": f"new WebSocket('{ELSEWHERE.replace('http', 'ws')}/')",
    "a script": f"import('{ELSEWHERE}/x.js').catch(() => 0)",
    "a style": "document.head.append(Object.assign(document.createElement('style'), { textContent: 'b { color: red }' }))",
    "a frame": f"document.body.append(Object.assign(document.createElement('iframe'), {{ src: '{ELSEWHERE}/' }}))",
    "a form": f"document.body.appendChild(Object.assign(document.createElement('form'), {{ action: '{ELSEWHERE}/' }})).submit()",
}


def test_the_page_has_no_way_to_anybody_else(visit: Visit) -> None:
    screen = visit.open()
    before = len(visit.sent)
    for code in WAYS_OUT.values():
        with visit.context.expect_console_message(lambda one: "Content Security Policy" in one.text):
            screen.page.evaluate(f"async () => {{ try {{ await {code}; }} catch {{}} }}")
    assert len(visit.sent) == before
    visit.expected.append("Content Security Policy|blocked")


def test_a_request_to_somebody_else_fails_the_test_that_makes_it(visit: Visit) -> None:
    page = visit.context.new_page()  # which is nobody's, and may ask anybody
    page.evaluate(f"fetch('{ELSEWHERE}/?of=me', {{ mode: 'no-cors' }}).catch(() => 0)")
    with pytest.raises(AssertionError, match=r"left for somebody else: .*elsewhere.example/\?of=me"):
        visit.end()
    visit.recorder.sent.clear()
    visit.expected.append("ERR_EMPTY_RESPONSE")


def test_an_error_in_the_console_fails_the_test_that_makes_it(visit: Visit) -> None:
    screen = visit.open()
    screen.page.evaluate("setTimeout(() => { throw new Error('nobody catches it'); })")
    screen.page.wait_for_timeout(50)
    with pytest.raises(AssertionError, match=r"the browser complains: .*nobody catches it"):
        visit.end()
    visit.complaints.clear()


def test_a_machine_without_chromium_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(AssertionError, match="install the package chromium"):
        executable()
