"""Small news for the tests and the picture of the search page: stories, each in copies as several papers print them."""

from __future__ import annotations

from typing import Any

STORIES = {
    "Ministers agree to cut emissions from steel works": (
        "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade. Plants "
        "that miss the target will pay a fee of 20 euros for every tonne above it, and the money goes to towns that "
        "lose a furnace. The climate summit in Lisbon will vote on the plan in March."
    ),
    "Climate summit opens with a dispute about coal": (
        "The climate summit opened in Lisbon with a dispute about coal. Delegates of forty countries want an end date, "
        "while others ask for a fund that pays for new grids first. A draft of the declaration names neither a year "
        "nor a sum, and the host expects talks through the night."
    ),
    "Coral reefs recover where fishing stopped": (
        "Coral reefs recover faster than expected where fishing has stopped, a survey of sixty bays has found. Divers "
        "counted twice as many young corals as ten years ago, although the climate grew warmer. Storms remain the "
        "greatest danger, the authors write, and they advise to protect mangroves as well."
    ),
    "Night trains return to the north": (
        "Night trains return to the north in December after a break of twelve years. The operator bought coaches from "
        "three countries, and says that most passengers come from planes: the climate is the reason that one in three "
        "of them gives. Tickets start at 49 euros in a seat and at 89 euros in a bed."
    ),
    "Home side reaches the final after forty years": (
        "The home side scored twice in the last ten minutes to reach the final for the first time in forty years. "
        "Thousands sang in the rain around the ground until midnight, and the city promised a day off if the cup comes "
        "home. The keeper, who saved two penalties, called the climate in the stadium frightening."
    ),
}
FORMS = (
    ("The Courier", "{}"),
    ("Evening Post", "LISBON (Wire) - {}"),
    ("Harbour News", "{} The Wire contributed to this report."),
    ("Daily Record", "Updated on Saturday. {} More follows."),
)


def documents() -> list[dict[str, Any]]:
    """Return the stories in their copies: four of the first, three of the second, and so on."""
    made = []
    for story, (title, text) in enumerate(STORIES.items()):
        for copy, (source, form) in enumerate(FORMS[: 4 - story if story < 3 else 1]):
            made.append(
                {
                    "id": f"{story}{copy}",
                    "title": title,
                    "body": form.format(text),
                    "source": source,
                    "date": f"2026-{9 + copy % 2:02d}-{3 + 5 * story + copy:02d}",
                    "url": f"https://example.org/{story}/{copy}",
                }
            )
    return made


ARABIC = [
    {
        "id": f"arabic{copy}",
        "title": "افتتاح قمة المناخ بخلاف حول الفحم",
        "body": "افتتحت قمة المناخ في لشبونة بخلاف حول الفحم. يريد مندوبون من أربعين دولة تحديد موعد نهائي، بينما يطلب "
        f"آخرون صندوقاً يدفع أولاً ثمن شبكات جديدة.{ending}",
        "source": "الشرق",
        "date": f"2026-09-1{copy}",
    }
    for copy, ending in enumerate(("", " تابعونا."))
]

HOSTILE = [
    "<script>document.title = 'taken over'</script><img src=x onerror=\"document.title = 'taken over'\"> hostile",
    "hostile \" onmouseover=\"document.title='taken over' &lt;b&gt; </textarea></title> {{ 7 * 7 }} {% raw %}",
    "hostile \u202egnp.exe\u202c \u2066 שלום עולם مرحبا بالعالم \u0000\u0007\u001b[31m red \ufeff\u2028\u2029 end",
    "hostile " + "Donaudampfschifffahrtsgesellschaft" * 200,
    "hostile \ud800 lone surrogate and " + "e\u0301\u0302\u0303" * 300,
]


def hostile() -> list[dict[str, Any]]:
    """Return documents whose every field holds what a page must not take for its own."""
    return [
        {
            "id": f"{text[:60]}{copy}".encode("utf-8", "replace").decode(),
            **{"title": text, "body": text, "source": text[:200], "date": text[:20], "url": "javascript:alert(1)"},
        }
        for text in HOSTILE
        for copy in range(2)
    ]
