"""What a replay is of, in words: its lesson, its player, its target."""

from aimbot_lab.replay.episode import Replay


def lesson_title(replay: Replay) -> str:
    """The lesson that `replay` is of, else the run's name."""
    about = replay.about
    if "lesson" not in about:
        return str(about.get("name", ""))
    name = about.get("lesson_name")
    return f"lesson {about['lesson']}" + (f": {name}" if name else "")


def player_words(replay: Replay) -> str:
    """Who played `replay`, as far as it says: which agent, and how its actions were drawn."""
    about = replay.about
    agent = f"{about['agent']} agent" if "agent" in about else ""
    return ", ".join(str(words) for words in (agent, about.get("player")) if words)


def cell_words(replay: Replay) -> str:
    """Target and difficulty of `replay` in words."""
    result = replay.episode.result
    level = f", difficulty {result.difficulty}" if result.difficulty else ""
    return f"{result.target}{level}"
