"""A sweep as its storage keeps it: started once, then joined, resumed or read."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState
from pydantic import TypeAdapter

import aimbot_lab
from aimbot_lab.experiment.config.document import LoadedCurriculum, parse_curriculum
from aimbot_lab.experiment.runs.run_record import noted_in
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.named_code import MayRun, never
from aimbot_lab.shipped.named_files import is_path
from aimbot_lab.sweep.document import LoadedSweep, load_sweep
from aimbot_lab.sweep.schedules import SEARCH_TRIAL, Candidate, ConfirmSchedule, SearchSchedule
from aimbot_lab.sweep.settings import SweepFile
from aimbot_lab.sweep.space import also_params, default_params, outside_space
from aimbot_lab.sweep.storage import (
    Storage,
    check_storage,
    choose_storage,
    damage_reported,
    open_storage,
)
from aimbot_lab.sweep.trial_queue import REASON, TrialQueue
from aimbot_lab.tracking.data_folder import DataFolder, without_password
from aimbot_lab.version import code_hash

RECORD, TRIALS, PARENT, TAGS, RETRIED = "sweep", "trials", "parent_run", "tags", "retried"
CONFIRM = "/confirm"
# What may differ between those who work on one sweep: how much, not what.
_FREE = ("trials", "workers", "lease", "tracking")


@dataclass(frozen=True)
class Unconfirmed:
    """Values whose confirmation failed."""

    label: str  # of the trial or the values of `confirm.also`, as tables have it
    reason: str

    @property
    def line(self) -> str:
        """What happened."""
        return f"the confirmation of trial {self.label} failed: {self.reason}"


@dataclass(frozen=True)
class SweepRecord:
    """A sweep that has begun."""

    storage: Storage
    study: optuna.Study
    config: SweepFile
    base: LoadedCurriculum

    @property
    def name(self) -> str:
        """What the sweep is called."""
        return self.config.name

    @property
    def parent_run(self) -> str | None:
        """The id of the sweep's run in the tracking store, None where it has none yet."""
        value = self.study.user_attrs.get(PARENT)
        return None if value is None else str(value)

    @property
    def trials(self) -> int:
        """How many trials are wanted; more may have begun."""
        return int(self.study.user_attrs[TRIALS])

    @property
    def tags(self) -> dict[str, str]:
        """The tags of the user, for the sweep's run and all below it."""
        return dict(self.study.user_attrs.get(TAGS, {}))

    @property
    def other_code(self) -> str | None:
        """A line where the sweep was begun by other code of the same version than is here."""
        then = self.study.user_attrs[RECORD].get("code", code_hash())  # older ones have none
        if then == code_hash():
            return None
        return (
            f"sweep {self.name!r} was begun by other code of aimbot-lab ({then}, and this is "
            f"{code_hash()}): values of its trials may not compare"
        )

    def search_queue(self) -> TrialQueue:
        """The sweep's trials."""
        schedule = SearchSchedule(self.config, self.base, self.trials)
        return TrialQueue(self.storage, self.study, schedule, lease=self.config.lease)

    def confirm_queue(self) -> TrialQueue | None:
        """The best few trials once more, None during the search or if none are wanted."""
        search = self.search_queue()
        if not self.config.confirm.best or not search.is_done():
            return None
        candidates = self.candidates(search.trials)
        study = _study(self.storage, self.name + CONFIRM, self.config)
        retried = study.user_attrs.get(RETRIED, ())
        schedule = ConfirmSchedule(self.config, candidates, retried=retried)
        return TrialQueue(self.storage, study, schedule, lease=self.config.lease)

    def unconfirmed(self, confirming: Sequence[FrozenTrial]) -> list[Unconfirmed]:
        """Those of the `confirming` trials that failed."""
        has_defaults = not outside_space(self.config.search, self.base)
        labels = {0: "0 (defaults)"} if has_defaults else {}
        failed = [one.user_attrs for one in confirming if one.state == TrialState.FAIL]
        return [
            Unconfirmed(labels.get(one[SEARCH_TRIAL], str(one[SEARCH_TRIAL])), one.get(REASON, "?"))
            for one in failed
        ]

    def retry(self) -> list[Unconfirmed]:
        """The confirmations that failed, which are due again from now on."""
        queue = self.confirm_queue()
        if queue is None:
            return []
        with self.storage.alone(queue.study.study_name):
            trials, before = counted(queue), queue.study.user_attrs.get(RETRIED, ())
            failed = [one.number for one in trials if one.state == TrialState.FAIL]
            if failed:
                queue.study.set_user_attr(RETRIED, [*before, *failed])
        return self.unconfirmed(trials)

    @damage_reported()
    def reap(self) -> list[int]:
        """The numbers of the trials whose workers are dead; they now wait for others."""
        again = self.confirm_queue()
        if again is not None:
            again.reap()
        return self.search_queue().reap()

    def candidates(self, trials: list[FrozenTrial]) -> dict[Candidate, Mapping[str, Any]]:
        """Values to confirm by their trial: the best and the first trial's; those of `also`.

        The first trial's are the curriculum's own, to compare with, where they lie in the space.
        """
        best = ranked(self.config, trials)[: self.config.confirm.best]
        if not best:
            return {}
        # Values of one's own first: where these are the slow ones, no worker waits for them alone.
        found: dict[Candidate, Mapping[str, Any]] = dict(
            also_params(self.config, self.base).items()
        )
        defaults = default_params(self.config.search, self.base)
        if defaults is not None:
            found[0] = defaults
        found.update((trial.number, trial.params) for trial in best)
        return found


def counted(queue: TrialQueue) -> list[FrozenTrial]:
    """Its trials, without those that failed and whose values others have again."""
    left_behind = queue.study.user_attrs.get(RETRIED, ())
    return [trial for trial in queue.trials if trial.number not in left_behind]


def ranked(sweep: SweepFile, trials: list[FrozenTrial]) -> list[FrozenTrial]:
    """The trials with a value, best first; equal ones in the order of their numbers."""
    sign = -1 if sweep.maximizes else 1
    complete = [t for t in trials if t.state == TrialState.COMPLETE and t.value is not None]
    return sorted(complete, key=lambda trial: (sign * (trial.value or 0.0), trial.number))


@damage_reported()
def begin(
    storage: Storage,
    sweep: LoadedSweep,
    *,
    resume: bool,
    trials: int | None = None,
    tags: Mapping[str, str] | None = None,
) -> SweepRecord:
    """The sweep in `storage`, begun now or, where it has been and `resume` says so, joined.

    One that was begun has the number of trials that it was begun with, or `trials` where that is
    given; those that have begun by then are ended anyway. It keeps its tags, to which `tags` come.
    Raises ConfigurationError where there is one and it is not to be joined, or differs, or was
    begun by another version of this package.
    """
    config = sweep.config
    with storage.alone(config.name):
        study = _study(storage, config.name, config)
        stored = study.user_attrs.get(RECORD)
        if stored is None and study.get_trials(deepcopy=False):
            where = storage.address.shown
            raise ConfigurationError(f"study {config.name!r} in {where} is not a sweep: use --name")
        if stored is None:
            study.set_user_attr(TRIALS, config.trials)
            study.set_user_attr(RECORD, _stored(sweep))
        elif not resume:
            raise ConfigurationError(_already_begun(storage, study, config.name))
        else:
            _check_same(stored, sweep, storage)
            study.set_user_attr(TRIALS, trials or study.user_attrs[TRIALS])
        if tags:
            study.set_user_attr(TAGS, {**study.user_attrs.get(TAGS, {}), **tags})
    return load(storage, config.name)


@damage_reported()
def load(storage: Storage, name: str, *, may_run: MayRun = never) -> SweepRecord:
    """The sweep `name` that was started. Raises ConfigurationError if there is none."""
    try:
        study = optuna.load_study(study_name=name, storage=storage.optuna)
        stored = study.user_attrs[RECORD]
    except KeyError:
        shown = storage.address.shown
        raise ConfigurationError(f"no sweep {name!r} in {shown}") from None
    config = TypeAdapter(SweepFile).validate_python(json.loads(stored["config"]))
    files = json.loads(stored.get("base_files", "{}"))
    base = parse_curriculum(
        stored["base"], stored["base_file"], find=files.__getitem__, may_run=may_run
    )
    return SweepRecord(storage, study, config, base)


def find_record(
    folder: DataFolder, sweep: str, storage: str | None, *, may_run: MayRun | None = None
) -> SweepRecord:
    """The sweep of that name, or of the file at that path, in `storage` or the data folder.

    Nothing is created. Code that its base names may run where `may_run` says so; without it, where
    a training in `folder` began with it. Raises ConfigurationError if there is none.
    """
    name = load_sweep(sweep).config.name if is_path(sweep) else sweep
    address = choose_storage(folder, name, storage)
    check_storage(address)
    if address.file is not None and not address.file.exists():
        raise ConfigurationError(
            f"sweep {name!r} has not begun here (there is no file {address.file}); begin it with: "
            f"aimbot-lab sweep {sweep}"
        )
    return load(open_storage(address), name, may_run=may_run or noted_in(folder))


def fingerprint(sweep: LoadedSweep) -> str:
    """A hash of all that a trial's values and worth depend on."""
    config = {key: value for key, value in asdict(sweep.config).items() if key not in _FREE}
    text = json.dumps([config, sweep.base.resolved_text], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _stored(sweep: LoadedSweep) -> dict[str, str]:
    config, uri = asdict(sweep.config), sweep.config.tracking.uri
    config["tracking"]["uri"] = None if uri is None else without_password(uri)
    return {
        "config": json.dumps(config),
        "source": without_password(sweep.source_text),
        "base": sweep.base.open_text,
        "base_file": str(sweep.base.path),
        "base_files": json.dumps(sweep.base.files),
        "fingerprint": fingerprint(sweep),
        "version": aimbot_lab.__version__,
        "code": code_hash(),
    }


def _study(storage: Storage, name: str, config: SweepFile) -> optuna.Study:
    return optuna.create_study(
        storage=storage.optuna,
        study_name=name,
        direction="maximize" if config.maximizes else "minimize",
        load_if_exists=True,
    )


def _already_begun(storage: Storage, study: optuna.Study, name: str) -> str:
    trials = study.get_trials(deepcopy=False)
    ended = sum(trial.state.is_finished() for trial in trials)
    return (
        f"sweep {name!r} has begun already ({ended} of {study.user_attrs[TRIALS]} trials ended, in "
        f"{storage.address.shown}): resume it with --resume, or start another with --name"
    )


def _check_same(stored: Mapping[str, str], sweep: LoadedSweep, storage: Storage) -> None:
    name, where = sweep.config.name, storage.address.shown
    if stored["fingerprint"] != fingerprint(sweep):
        raise ConfigurationError(
            f"sweep {name!r} in {where} has begun with another {_differing(stored, sweep)}: begin "
            "another with --name"
        )
    # A fingerprint is what it is said to be: others may have written to the storage.
    if _begun_with(stored) != _begun_with(_stored(sweep)):
        raise ConfigurationError(
            f"sweep {name!r} in {where} was altered after it had begun: begin another with --name"
        )
    if stored["version"] != aimbot_lab.__version__:
        raise ConfigurationError(
            f"sweep {name!r} in {where} was begun by aimbot-lab {stored['version']}, and this is "
            f"{aimbot_lab.__version__}: values would not compare; begin another with --name"
        )


def _begun_with(stored: Mapping[str, str]) -> tuple[Any, ...]:
    """What trials are made of, as `_stored` keeps it."""
    config = json.loads(stored["config"])
    rest = {key: value for key, value in config.items() if key not in _FREE}
    return rest, stored["base"], json.loads(stored.get("base_files", "{}"))


def _differing(stored: Mapping[str, str], sweep: LoadedSweep) -> str:
    """What differs from the sweep as it was begun: keys of its file, or its curriculum."""
    before, now = json.loads(stored["config"]), json.loads(json.dumps(asdict(sweep.config)))
    keys = [key for key in now if key not in _FREE and before.get(key) != now[key]]
    return " and ".join(keys) if keys else "curriculum"
