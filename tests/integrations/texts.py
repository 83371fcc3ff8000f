"""Passages that the tests of integrations choose from."""

STEEL = (
    "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade. "
    "Plants that miss the target will pay a fee of 20 euros for every tonne above it."
)
STEEL_AGAIN = "LONDON (Wire) - " + STEEL.replace("on Friday", "late on Friday")
FINAL = "The home side scored twice in the last ten minutes to reach the final for the first time in forty years."
REPORT = (
    "The company reported its results this morning, and analysts had little to say about them. " + FINAL + " Elsewhere "
    "the weather kept ferries in port for most of the weekend, and the bridge stayed closed to lorries."
)
BUDGET = "The council will vote on Tuesday on a budget that closes two libraries and keeps the swimming pool open."
