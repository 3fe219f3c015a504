"""The page in a browser without a window, driven over its debugging pipe: no driver is needed."""

import json
import os
import shutil
import subprocess
import sys
import time

import pytest

pytest.importorskip("tensorflow", exc_type=ImportError)

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
# a browser reads messages from descriptor 3 and writes them to 4
RENUMBER = """
import fcntl, os, sys
places = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
for place, number in zip(places, (3, 4)):
    os.dup2(place, number)
os.execvp(sys.argv[3], sys.argv[3:])
"""


class Page:
    """A page of a browser (Chrome DevTools Protocol, messages that end with a zero byte)."""

    def __init__(self, folder):
        self._read, theirs = os.pipe()
        ours, self._write = os.pipe()
        flags = "--headless --no-sandbox --disable-gpu --no-first-run --remote-debugging-pipe"
        command = [BROWSER, *flags.split(), f"--user-data-dir={folder}", "about:blank"]
        start = [sys.executable, "-IS", "-c", RENUMBER, str(ours), str(theirs), *command]
        self.process = subprocess.Popen(start, pass_fds=(ours, theirs), stderr=subprocess.DEVNULL)
        os.close(ours)
        os.close(theirs)
        self._answers, self._number, self._session = open(self._read, "rb"), 0, {}
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        found = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": found["sessionId"]}

    def _call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters, **self._session}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            text = b""
            while not text.endswith(b"\0"):
                byte = self._answers.read(1)
                assert byte, "the browser ended"
                text += byte
            answer = json.loads(text[:-1])
            if answer.get("id") == self._number:
                return answer["result"]

    def open(self, url):
        self._call("Page.navigate", url=url)

    def run(self, script):
        """The value of an expression, objects as JSON."""
        found = self._call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, script):
        until = time.monotonic() + 120
        while not (found := self.run(script)):
            assert time.monotonic() < until, script
            time.sleep(0.05)
        return found

    def close(self):
        self.process.kill()
        self.process.wait()
        self._answers.close()
        os.close(self._write)


@pytest.fixture(scope="module")
def page(client, tmp_path_factory):
    if BROWSER is None:
        pytest.skip(f"none of {', '.join(NAMES)} is installed")
    opened = Page(tmp_path_factory.mktemp("browser"))
    opened.open(client.parts.geturl() + "/")
    opened.wait("!!document.querySelector('#inputs textarea')")
    yield opened
    opened.close()


def test_sentences_are_typed_and_probabilities_shown_as_bars(client, page):
    assert page.run("[...document.querySelectorAll('label')].map(x => x.textContent)") == [
        *("Model", "text", "text_pair")
    ]
    page.run("find('input-text').value = 'the <b>cat</b>'")
    page.run("find('input-text_pair').value = 'a dog ran'")
    page.run("document.querySelector('button').click()")
    rows = "[...document.querySelectorAll('.row')].map(row => [...row.children]"
    shown = page.wait(
        f"{rows}.map(x => x.textContent || x.style.width)).join('|') && {rows}"
        ".map(x => x.textContent || x.style.width))"
    )
    found = client.predict({"text": ["the <b>cat</b>"], "text_pair": ["a dog ran"]})
    values = sorted(zip(found["probabilities"][0], found["labels"][0], strict=True), reverse=True)
    assert [(name, number) for name, _, number in shown] == [
        (name, f"{value:.3f}") for value, name in values
    ]
    widths = [float(width.rstrip("%")) for _, width, _ in shown]
    assert widths == pytest.approx([100 * value for value, _ in values], abs=1e-3)


def test_errors_of_the_server_are_shown(page):
    page.run("inputs = {text: inputs.text}")
    page.run("document.querySelector('button').click()")
    assert "Expected inputs" in page.wait("document.querySelector('p.error')?.textContent")
    page.run("choose()")


def test_answers_are_highlighted_where_they_stand(page):
    context = "A 😀 <i>cat</i> sat."
    start = context.index("cat")
    answer = {"text": "cat", "start": start, "end": start + 3, "score": 0.75, "null_margin": -1.0}
    asked = {"question": "who?", "context": context}
    page.run(f"show({json.dumps(answer)}, {json.dumps(asked)})")
    assert page.run("document.querySelector('mark').textContent") == "cat"
    assert page.run("document.querySelector('.read').textContent") == context
    assert page.run("document.querySelector('.row').textContent") == "cat0.750"
    nothing = {**answer, "text": "", "start": 0, "end": 0}
    page.run(f"show({json.dumps(nothing)}, {json.dumps(asked)})")
    assert page.run("document.querySelectorAll('mark').length") == 0
    assert "No answer" in page.run("find('answer').textContent")


def test_words_are_coloured_by_their_tags(page):
    text = "Ann 😀 met Bob Day in Rome"
    words = ["Ann", "met", "Bob", "Day", "in", "Rome"]
    labels = ["B-PER", "O", "B-PER", "I-PER", "O", "B-LOC"]
    starts = [text.index(word) for word in words]
    ends = [start + len(word) for start, word in zip(starts, words, strict=True)]
    answer = {"word": words, "label": labels, "start": starts, "end": ends}
    answer["probability"] = [0.5] * 6
    page.run(f"show({json.dumps(answer)}, {json.dumps({'text': text})})")
    marks = "[...document.querySelectorAll('mark')]"
    shown = page.run(f"{marks}.map(x => [x.firstChild.textContent, x.lastChild.textContent])")
    assert shown == [["Ann", "B-PER"], ["Bob", "B-PER"], ["Day", "I-PER"], ["Rome", "B-LOC"]]
    colours = page.run(f"{marks}.map(x => getComputedStyle(x).backgroundColor)")
    assert colours[0] == colours[1] == colours[2] != colours[3]
    assert page.run("document.querySelector('mark').title") == "B-PER 0.500"
