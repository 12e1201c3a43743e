"""What SIGINT, SIGTERM and SIGHUP do to a training."""

import signal
from collections.abc import Iterator

import pytest

from aimbot_lab.cli.stopping import SIGNALS, stop_on_signals
from aimbot_lab.foundation.errors import AbortedError


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """As in a plain shell, even where the tests run under nohup; afterwards as they were."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_is_acknowledged_and_asks_to_stop(number: signal.Signals) -> None:
    notices: list[str] = []
    with stop_on_signals(notices.append) as stop:
        assert not stop()
        signal.raise_signal(number)
        assert stop()
    (notice,) = notices
    assert "after this minibatch" in notice
    assert "saving" in notice


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_aborts(number: signal.Signals) -> None:
    with pytest.raises(AbortedError), stop_on_signals(lambda _: None) as stop:  # noqa: PT012
        stop()
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(number)
        pytest.fail("the second signal was not heard")


def test_a_closing_terminal_may_hang_up_twice() -> None:
    with stop_on_signals(lambda _: None) as stop:
        stop()
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)
        assert stop()


@pytest.mark.parametrize("number", SIGNALS)
def test_before_anything_polls_a_signal_ends_it_and_no_run_is_claimed(
    number: signal.Signals,
) -> None:
    no_run = pytest.raises(AbortedError, match="no run was created")
    with no_run as raised, stop_on_signals(lambda _: None):
        signal.raise_signal(number)
        pytest.fail("the signal was not heard")
    assert raised.value.exit_code == 130


def test_an_abort_that_tells_of_its_run_is_passed_on() -> None:
    with pytest.raises(AbortedError, match=r"^run 1$"), stop_on_signals(lambda _: None):
        raise AbortedError("run 1")


def test_nohup_is_respected() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with stop_on_signals(lambda _: None) as stop:
        signal.raise_signal(signal.SIGHUP)
        assert not stop()
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_a_background_job_of_a_script_hears_sigint() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with stop_on_signals(lambda _: None) as stop:
        stop()
        signal.raise_signal(signal.SIGINT)
        assert stop()


def test_the_handlers_are_given_back() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with stop_on_signals(lambda _: None):
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before
