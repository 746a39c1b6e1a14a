"""python -m tests.protocols.pump [--fault NAME] [--plan NAME] RUNS [SEED]: random schedules; a fault tells its seed."""

from __future__ import annotations

import argparse
import sys
import time

from tests.protocols.pump.faults import FAULTS, PLANS
from tests.protocols.pump.schedule import Schedule
from tests.protocols.pump.words import Fault


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.protocols.pump", description=__doc__)
    parser.add_argument("runs", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--fault", default="", choices=["", *FAULTS])
    parser.add_argument("--plan", default="", choices=["", *PLANS])
    options = parser.parse_args()
    plan = PLANS[options.plan or (FAULTS[options.fault].plan if options.fault else "core")]
    counts: dict[str, int] = {}
    began = time.monotonic()
    for seed in range(options.seed, options.seed + options.runs):
        try:
            seen = Schedule(plan, seed, options.fault).run()
        except Fault as found:
            print(f"seed {seed}: {found} ({time.monotonic() - began:.1f} s)")
            return 1
        for what, many in seen.items():
            counts[what] = counts.get(what, 0) + many
    print(f"{options.runs} schedules from seed {options.seed}: no fault ({time.monotonic() - began:.1f} s) {counts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
