"""Trainer files of the kinds that people's projects have, some of them dumps and old forms."""

HEAD = "behaviors:\n  Runner:\n    trainer_type: ppo\n"
LESSONS = """\
environment_parameters:
  {name}:
    curriculum:
      - name: near
        completion_criteria: {{measure: {measure}, behavior: Runner, threshold: {threshold},
          min_lesson_length: 50{more}}}
        value: {first}
      - name: far
        value: {second}
        completion_criteria: null
"""


def lessons(name: str, **more: object) -> str:
    """Two lessons of a parameter."""
    usual = {"measure": "reward", "threshold": 0.8, "first": 4.0, "second": 2.0, "more": ""}
    return LESSONS.format(name=name, **{**usual, **more})


DUMP = """\
default_settings: null
behaviors:
  Runner:
    trainer_type: ppo
    hyperparameters: {batch_size: 512, buffer_size: 5120, learning_rate: 0.0002, beta: 0.004,
      epsilon: 0.25, lambd: 0.93, num_epoch: 4, shared_critic: false, epsilon_schedule: linear,
      learning_rate_schedule: linear, beta_schedule: constant}
    network_settings: {normalize: true, hidden_units: 64, num_layers: 3, vis_encode_type: simple,
      memory: null, goal_conditioning_type: hyper, deterministic: false}
    reward_signals:
      extrinsic: {gamma: 0.985, strength: 0.5, network_settings: {normalize: false,
        hidden_units: 128, num_layers: 2, memory: null}}
    init_path: null
    keep_checkpoints: 5
    checkpoint_interval: 500000
    max_steps: 3000000
    time_horizon: 128
    summary_freq: 50000
    threaded: false
    self_play: null
    behavioral_cloning: null
env_settings: {env_path: null, env_args: null, base_port: 5005, num_envs: 1, num_areas: 1,
  timeout_wait: 60, seed: 21, max_lifetime_restarts: 10, restarts_rate_limit_n: 1,
  restarts_rate_limit_period_s: 60}
engine_settings: {width: 84, height: 84, quality_level: 5, time_scale: 20, target_frame_rate: -1,
  capture_frame_rate: 60, no_graphics: false}
environment_parameters: null
checkpoint_settings: {run_id: one, initialize_from: null, load_model: false, resume: false,
  force: true, train_model: false, inference: false, results_dir: results}
torch_settings: {device: null}
debug: false
"""
CONSTANTS = """\
environment_parameters:
  goto_win_radius:
    curriculum:
    - value: {sampler_type: constant, sampler_parameters: {seed: 31, value: 4.0}}
      name: kick
      completion_criteria: {behavior: Runner, measure: reward, min_lesson_length: 50,
        signal_smoothing: true, threshold: 8.0, require_reset: false}
    - value: {sampler_type: constant, sampler_parameters: {seed: 32, value: 1.5}}
      name: fight
      completion_criteria: null
"""
BUILD = """\
env_settings: {env_path: 'Builds\\Game.exe', num_envs: 3, env_args: [--level, 2], base_port: 6005,
  timeout_wait: 90}
engine_settings: {time_scale: 30.0, width: 320, no_graphics: true}
torch_settings: {device: cuda}
"""
SIGNALS = """\
    reward_signals:
      extrinsic: {gamma: 0.97, strength: 2.0}
      curiosity: {strength: 0.01, encoding_size: 64}
      rnd: {strength: 0.02}
      gail: {strength: 0.1, demo_path: d.demo}
    behavioral_cloning: {demo_path: d.demo, steps: 1000}
    network_settings: {memory: {sequence_length: 32, memory_size: 64}}
"""
BRAINS = """\
default:
  trainer: ppo
  batch_size: 100
  buffer_size: 1000
  beta: 4.0e-3
  hidden_units: 32
  num_layers: 1
  max_steps: 2.0e5
  memory_size: 64
  sequence_length: 8
  use_recurrent: false
  normalize: true
  reward_signals: {extrinsic: {strength: 1.0, gamma: 0.95}}
Runner:
  learning_rate: 1.0e-4
  use_recurrent: true
  vis_encode_type: resnet
"""
COURSE = """\
  measure: progress
  thresholds: [0.1, 0.4]
  min_lesson_length: 7
  parameters:
    {name}: [1.0, 2.0, 3.0]
"""
OF_0_17 = (
    f"{HEAD}    max_steps: 40000\ncurriculum:\n  Runner:\n"
    f"{COURSE.format(name='move_speed').replace('  ', '    ')}"
    "parameter_randomization:\n  resampling-interval: 500\n"
    "  gun_range: {sampler-type: uniform, min_value: 50, max_value: 90}\n"
)
UPGRADED = (
    f"{HEAD}environment_parameters:\n  move_speed:\n    curriculum:\n"
    "    - Lesson0:\n        completion_criteria: {measure: progress, behavior: Runner,\n"
    "          threshold: 0.2}\n        value: 3.0\n    - Lesson1: {value: 5.0}\n"
)
DQN = """\
behaviors:
  Runner:
    trainer_type: dqn
    max_steps: 70000
    hyperparameters: {batch_size: 32, buffer_size: 9000, learning_rate: 0.0004, gamma: 0.9,
      learning_rate_schedule: constant, buffer_init_steps: 300, steps_per_update: 4, tau: 0.01,
      exploration_schedule: linear, exploration_final_eps: 0.02, target_update_interval: 700}
"""
SAC = """\
behaviors:
  Runner:
    trainer_type: sac
    max_steps: 9000
    hyperparameters: {learning_rate: 0.0003, buffer_init_steps: 200, tau: 0.01,
      steps_per_update: 10, init_entcoef: 0.5}
"""
SPACED = """\
behaviors :
    Бегун :
        trainer_type : ppo
        hyperparameters :
            batch_size : "128"
            buffer_size : 2.048e+3
            learning_rate : 3e-4
            beta: 5e-3
        max_steps : 5e5
        time_horizon : 64.0
"""

READ = {  # by ML-Agents' settings code, too
    "dump": DUMP,
    "dump with lessons": DUMP.replace("environment_parameters: null\n", CONSTANTS),
    "defaults": HEAD,
    "rate alone": f"{HEAD}    hyperparameters: {{learning_rate_schedule: constant}}\n",
    "own lessons": f"{HEAD}    max_steps: 90000\n{lessons('room')}",
    "build": f"{HEAD}    time_horizon: 100\n{lessons('room', measure='progress')}{BUILD}",
    "signals": f"{HEAD}{SIGNALS}",
    "spaced": SPACED,
    "shared": (
        "default_settings: {trainer_type: ppo, max_steps: 1000, hyperparameters: {beta: 0.2,\n"
        "  beta_schedule: constant}}\n"
        "behaviors: {Runner: {trainer_type: ppo, hyperparameters: {epsilon: 0.3}}}\n"
    ),
    "self-play": f"{HEAD}    self_play: {{save_steps: 900, window: 7, swap_steps: 30}}\n",
    "samplers": (
        f"{HEAD}environment_parameters:\n  gun_range: {{sampler_type: gaussian,\n"
        "    sampler_parameters: {mean: 60, st_dev: 5}}\n  move_speed: {sampler_type: "
        "multirangeuniform,\n    sampler_parameters: {intervals: [[2.0, 4.0], [6.0, 8.0]]}}\n"
        "  time_limit: {sampler_type: uniform,\n"
        "    sampler_parameters: {min_value: 20, max_value: 30}}\n"
    ),
    "lessons of samplers": (
        lessons("room", first="{sampler_type: gaussian, sampler_parameters: {mean: 2, seed: 9}}")
        + f"{HEAD}    time_horizon: 32\n"
    ),
}
