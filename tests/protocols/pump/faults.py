"""The plans by which schedules are made, and the faults that can be seeded, each with the plan that finds it soon."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tests.protocols.pump.schedule import Plan

CORE = Plan()
DEADLY = replace(CORE, kills=(1, 2, 3), kill_in_turn=0.04)
PEACEFUL = replace(CORE, kills=(0,), keepers=(0,), sleeping=0.0, purging=0.0)
SLEEPING = replace(CORE, sleeping=1.0, kills=(0, 0, 1))
CROWDED = replace(SLEEPING, front=(2,), takers=(3, 4), kills=(0,))
SEEKING = replace(CORE, seeking=0.6, sleeping=0.0, takers=(2, 3))
SEEKING_SLEEPING = replace(SLEEPING, seeking=0.6, takers=(2, 3, 4))
DROWSY = replace(
    SLEEPING,
    oldest_first=False,
    handing=0.0,
    seeking=1.0,
    takers=(4,),
    front=(2,),
    puts=(9, 12),
    producers=(2,),
    stops=0.05,
    bursts=(1, 1, 1, 2, 3),
    dawdling=0.98,
    leaving=0.3,
    working=0.0,
    releasing=0.0,
    purging=0.0,
    failing=0.0,
    crossing=0.0,
    keepers=(0,),
    kills=(0,),
)
GROUPS = replace(
    CORE, groups=(2, 3, 4), back=(4, 6), front=(4, 8), puts=(6, 9, 12), takers=(2, 3), sleeping=0.0, purging=0.0
)
OFTEN_STOPPED = replace(PEACEFUL, takers=(3,), puts=(9,), stops=0.05)

PLANS = {
    "core": CORE,
    "deadly": DEADLY,
    "failing": replace(PEACEFUL, back=(2, 3), front=(2,), takers=(2, 3), failing=0.5, keepers=(0, 0, 1, 2)),
    "fronts": replace(OFTEN_STOPPED, back=(2,), front=(4,), releasing=0.5, stop_in_turn=0.05, bursts=(1, 1, 2, 3, 20)),
    "places": replace(
        OFTEN_STOPPED,
        back=(4,),
        front=(2,),
        keepers=(2,),
        keeping=(30,),
        releasing=0.4,
        dawdling=0.95,
        oldest_first=False,
        handing=0.0,
    ),
    "sleeping": SLEEPING,
    "starving": replace(CROWDED, leaving=0.1, working=0.1, keepers=(0,)),
    "purging": replace(CROWDED, purging=1.0, working=0.3),
    "levels": replace(CORE, levels=(2,), back=(2, 3), front=(2, 3)),
    "delays": replace(CORE, delays=0.25, sleeping=0.0),
    "seeking": SEEKING,
    "seeking further": replace(SEEKING, oldest_first=False, handing=0.0),
    "seeking deadly": replace(DEADLY, seeking=0.6, sleeping=0.0, takers=(2, 3)),
    "seeking stopped": replace(OFTEN_STOPPED, seeking=0.6, keepers=(0, 1), releasing=0.5, stop_in_turn=0.05),
    "seeking failing": replace(SEEKING, kills=(0,), back=(2, 3), front=(2,), failing=0.5),
    "seeking levels": replace(SEEKING, levels=(2,), back=(2, 3), front=(2, 3)),
    "seeking delays": replace(SEEKING, delays=0.25),
    "seeking sleeping": SEEKING_SLEEPING,
    "seeking starving": replace(SEEKING_SLEEPING, leaving=0.1, working=0.2, keepers=(0,), kills=(0,)),
    "seeking drowsy": DROWSY,
    "seeking working": replace(SEEKING_SLEEPING, seeking=1.0, working=0.3, purging=0.0, keepers=(0,), kills=(0,)),
    "seeking purging": replace(SEEKING_SLEEPING, purging=1.0, working=0.3, kills=(0,)),
    "groups": GROUPS,
    "groups deadly": replace(GROUPS, kills=(1, 2, 3), kill_in_turn=0.04),
    "groups stopped": replace(GROUPS, kills=(0,), stops=0.05, stop_in_turn=0.05, releasing=0.5),
    "groups failing": replace(GROUPS, kills=(0,), failing=0.5),
    "groups levels": replace(GROUPS, levels=(2,), back=(2, 4)),
    "groups delays": replace(GROUPS, delays=0.25),
    "groups seeking": replace(GROUPS, seeking=0.4),
    "groups sleeping": replace(GROUPS, sleeping=1.0, kills=(0, 0, 1), working=0.1, leaving=0.1),
    "groups sleeping seeking": replace(GROUPS, sleeping=1.0, seeking=0.4, kills=(0, 0, 1), working=0.1, leaving=0.1),
}


class Seeded(NamedTuple):
    """A fault: the plan that finds it soon, the seed of a schedule that does, what it changes."""

    plan: str
    seed: int
    what: str


FAULTS = {
    "p_early": Seeded("deadly", 22, "P moves before the rows are committed"),
    "free_early": Seeded("deadly", 4, "the back's slots are freed before P moves"),
    "low_early": Seeded("deadly", 11, "`low` is raised before the front's slots are entries"),
    "low_lost": Seeded("deadly", 11, "who comes after a dead mover does not derive `low` from the front"),
    "whole_front": Seeded(
        "deadly", 6838, "one batch may fill the whole front, so that its fill hides which row was the last"
    ),
    "p_lost": Seeded("deadly", 49, "who comes after a dead mover does not derive P from the front"),
    "handed_early": Seeded("deadly", 28, "P moves before what is handed over is in the front"),
    "undo": Seeded("deadly", 2, "after a death what is MOVING below P is made available again"),
    "garbage": Seeded("deadly", 72, "a flush leaves the rows at or above P that a dead mover committed"),
    "recover_quiet": Seeded("failing", 232, "what a mover gives back does not turn the back's head back"),
    "no_low": Seeded("core", 0, "a taker has entries of the back at or above `low`"),
    "front_early": Seeded("fronts", 97, "a taker has entries of the front at or above `low`"),
    "flow_last": Seeded("failing", 6897, "the second look reads the epochs first, then the flow word"),
    "no_flow_look": Seeded("core", 65, "the second look of a level that has flowed leaves out the flow word"),
    "no_plain_look": Seeded("core", 0, "the second look of a level that never flowed leaves out the flow word"),
    "no_back_epoch": Seeded("core", 208, "the second look leaves out the back's epoch"),
    "no_front_epoch": Seeded("fronts", 2682, "the second look leaves out the front's epoch"),
    "one_look": Seeded("places", 1228, "the word is not read again behind the place"),
    "empty_once": Seeded("core", 9, "nothing found is not looked at again"),
    "x_below_p": Seeded("core", 275, "a flow begins below P"),
    "x_at_tail": Seeded("core", 1, "a flow begins at the tail of a full ring"),
    "no_ends": Seeded("levels", 33, "the ends of more important levels are not looked at again"),
    "no_missed": Seeded("sleeping", 53, "who finds the lock taken leaves no mark"),
    "settle_quiet": Seeded("starving", 57, "who frees a slot of the front tells nobody"),
    "purge_quiet": Seeded("purging", 254, "who settles all rows tells nobody"),
    "mark_early": Seeded("seeking deadly", 178, "a row that is fetched is marked before it is an entry"),
    "mark_lost": Seeded("seeking deadly", 9, "who comes after a dead mover does not mark the row that it fetched"),
    "fetch_uncounted": Seeded(
        "seeking deadly", 9, "who comes after a dead mover does not count the row that it fetched"
    ),
    "by_position": Seeded("seeking stopped", 3, "takers go by positions in a front to which rows were fetched"),
    "search_unlocked": Seeded(
        "seeking stopped", 0, "a taker that has searched the rows leaves the lock before it offers what lies above"
    ),
    "fetch_endlessly": Seeded("seeking stopped", 122, "what was fetched may have all of the front"),
    "nothing_late": Seeded("seeking further", 817, "the version in which a front had nothing is read behind the look"),
    "chances_late": Seeded("seeking drowsy", 1939, "`chances` is read behind the look at the rings"),
    "no_chance": Seeded("seeking drowsy", 19, "who frees a slot of the front does not raise `chances`"),
    "no_progress": Seeded("seeking working", 7, "who has looked at all is woken nevertheless"),
    "fetch_blind": Seeded("groups", 27, "a row is fetched while another one has an earlier one of its group in hand"),
    "fetch_behind": Seeded(
        "groups stopped", 236, "a row is fetched though an earlier one was refused before its group was free"
    ),
    "search_once": Seeded("groups stopped", 67, "a search does not begin anew at what was refused"),
    "front_forgotten": Seeded("groups stopped", 57, "who frees a group turns back the back ring only"),
    "in_order_only": Seeded("groups sleeping", 0, "who finds only groups of others does not look behind them"),
    "all_in_order": Seeded("groups sleeping", 41, "what comes in order may have all of the front"),
    "no_overtaking": Seeded(
        "groups sleeping", 1706, "what was fetched, and came back, is not taken where an earlier row has no slot"
    ),
    "overtake_any": Seeded("groups sleeping seeking", 363, "... also what was fetched by one that wanted some only"),
    "overtake_blind": Seeded("groups delays", 7802, "... without a look at its group in the back ring"),
}
