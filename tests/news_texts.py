"""News items: one of them, another, and a copy of the first."""

CLIMATE = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."

FOOTBALL = "The home side scored twice in the last ten minutes to reach the final for the first time in forty years."

NEWS = [CLIMATE, FOOTBALL, "LONDON (Wire) - " + CLIMATE]
