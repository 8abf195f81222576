"""Job configs in many hands' styles, each with a comment on every kind of line that a fix may touch."""

PLAIN = """---
# a job of our own
job: extension
config:
  name: "harbour_lora"  # folder name
  process:
    - type: 'sd_trainer'
      training_folder: "output"
#      performance_log_every: 1000
      device: cuda:0
      network:
        type: "lora"
        linear: 32   # rank
        linear_alpha: 32
      datasets:
        - folder_path: "/data/harbour"  # ships
          caption_ext: "txt"
          resolution: [ 512, 768, 1024 ]  # several
          num_workers: 4

      train:
        batch_size: 4
        steps: 2000  # enough
        gradient_checkpointing: False  # off for speed
        optimizer: "adamw"
        lr: 1e-4
#        skip_first_sample: true
        ema_config:
          use_ema: true
          ema_decay: 0.99

        dtype: bf16
      model:
        name_or_path: "x/y"
        arch: qwen_image_edit_plus
        quantize: true  # 8 bit
      sample:
        sample_every: 250
        width: 1024
        height: 768 # wide
        prompts:
          # [trigger] works here
          - "ein Schiff – 안개 낀 항구 🚢"
          - 'it''s: a # trap'
        neg: ""
meta:
  name: "[name]"
"""

FLOW = """{job: extension, config: {name: harbour, process: [{type: sd_trainer, # one
  network: {type: lora, linear: 32},
  datasets: [{folder_path: /data/harbour, resolution: [512, 768,
     1024], num_workers: 4}],
  train: {batch_size: 4, gradient_checkpointing: false, optimizer: adamw,
    ema_config: {use_ema: true}},   # tail
  model: {name_or_path: x/y, arch: qwen_image_edit_plus, quantize: true},
  sample: {sample_every: 250, width: 1024, height: 768, prompts: [a, b]}}]}}
"""
"""Starts with a brace, as JSON does, but is YAML: such a file the config parser does not take."""

FLOW_BELOW = "job: extension\nconfig: " + FLOW.removeprefix("{job: extension, config: ").removesuffix("}\n") + "\n"

QUOTED = """"job": "extension"
"config":
    "name": "harbour"
    'process':
    - "type": "sd_trainer"
      "network": {"type": "lora", "linear": 32}
      "datasets":
      -   "folder_path": "/data/harbour"
          "resolution":
          - 512
          - 768	# a tab before me
          - 1024   # big
          "num_workers": 4
      "train":
            "batch_size": "4"
            "gradient_checkpointing": false
            "optimizer": 'adamw'
            "ema_config": {use_ema: true}
      "model":
        "name_or_path": |-
          x/y
        "arch": >-
          qwen_image_edit_plus
        "quantize": yes
      "sample":
        "sample_every": 250
        "width": 1_024
        "height": 768
        "prompts":
        - >
          several
          lines: of # text

        - plain text that goes
          on in the next line
"""

JSON_UI = """{
  "job": "extension",
  "config": {
    "name": "harbour",
    "process": [
      {
        "type": "diffusion_trainer",
        "network": {
          "type": "lora",
          "linear": 32
        },
        "datasets": [
          {
            "folder_path": "/data/harbour",
            "resolution": [
              512,
              768,
              1024
            ],
            "num_workers": 4
          }
        ],
        "train": {
          "batch_size": 4,
          "gradient_checkpointing": false,
          "optimizer": "adamw",
          "ema_config": {
            "use_ema": true
          }
        },
        "model": {
          "name_or_path": "x/y",
          "arch": "qwen_image_edit_plus",
          "quantize": true,
          "model_kwargs": {}
        },
        "sample": {
          "sample_every": 250,
          "width": 1024,
          "height": 768,
          "samples": [
            {
              "prompt": "안개 \\ud83d\\udea2 \\"x\\": {] 🚢"
            }
          ]
        }
      }
    ]
  },
  "meta": {
    "name": "[name]"
  }
}"""

JSON_TIGHT = (
    '{"job":"extension","config":{"name":"harbour","process":[{"type":"sd_trainer","network":{"type":"lora","linear":32},'
    '"datasets":[{"folder_path":"/data/harbour","resolution":[512,768,1024],"num_workers":4}],"train":{"batch_size":4,'
    '"gradient_checkpointing":false,"optimizer":"adamw","ema_config":{"use_ema":true}},"model":{"name_or_path":"x/y",'
    '"arch":"qwen_image_edit_plus","quantize":true},"sample":{"sample_every":250,"width":1024,"height":768}}]}}'
)

BARE = "\n".join(line[6:] for line in PLAIN.split("meta:")[0].splitlines()[7:] if line.startswith("      ")) + "\n"
"""Only the process."""

ALL = {
    "plain": PLAIN,
    "flow": FLOW_BELOW,
    "quoted": QUOTED,
    "json": JSON_UI,
    "tight": JSON_TIGHT,
    "bare": BARE,
    "crlf": PLAIN.replace("\n", "\r\n"),
    "cr": PLAIN.replace("\n", "\r"),
    "bom": "\ufeff" + PLAIN,
    "no_last_break": PLAIN.removesuffix("\n"),
    "json_crlf": JSON_UI.replace("\n", "\r\n"),
    "json_bom": "\ufeff" + JSON_UI,
    "ended": PLAIN + "...\n",
}
