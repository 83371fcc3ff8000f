"""From a mail or a reply in a forum to the words of its author."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndd_search as ndd
from ndd_search.core.text.mail import own_words
from tests.strategies import texts

RECIPE = ndd.Recipe(markup="mail")
NEWS = "The port of Leeds will close on Monday for repairs of the northern quay,\nwhich storms damaged in March."
REPLY = "I doubt it: the northern quay was repaired two years ago already."
SENDERS = [
    "On Mon, Jan 1, 2024 at 10:00 AM John Doe <j@example.org> wrote:",
    "On Mon, Jan 1, 2024 at 10:00 AM John\nDoe <john.doe@example.org>\nwrote:",
    "On 1 Jan 2024, at 10:00, John Doe wrote:",
    "Am 01.01.2024 um 10:00 schrieb Max Muster:",
    "Le lun. 1 janv. 2024 à 10:00, Jean Petit a écrit\u00a0:",
    "El lun, 1 ene 2024 a las 10:00, Ana (<ana@example.es>) escribió:",
    "Em seg., 1 de jan. de 2024 às 10:00, Rui <rui@example.pt> escreveu:",
    "Il giorno lun 1 gen 2024 alle ore 10:00 Pia <pia@example.it> ha scritto:",
    "Op ma 1 jan 2024 om 10:00 schreef Jan <jan@example.nl>:",
    "Den mån 1 jan. 2024 kl 10:00 skrev Åsa:",
    "W dniu 1.01.2024 o 10:00, Ewa pisze:",
    "Dne 1. 1. 2024 v 10:00 Eva napsal(a):",
    "пн, 1 янв. 2024 г. в 10:00, Иван <ivan@example.ru>:",
    "2024年1月1日(月) 10:00 山田 <yamada@example.jp>:",
    "张三 <zhang@example.cn> 于2024年1月1日周一 10:00写道：",
    "2024년 1월 1일 (월) 오전 10:00, 김 <kim@example.kr>님이 작성:",
]
UNSURE = ["John Doe wrote:", "Max Muster schrieb am 1.1.2024:", "01.01.2024 10:00, Иван пишет:", "Matti kirjoitti:"]
ANNOUNCED = [
    "-----Original Message-----\nFrom: John\nSent: Monday\nTo: Ann\nSubject: RE: port\n",
    "From: John <j@example.org>\nSent: Monday\nTo: Ann\nSubject: RE: port\n",
    "*From:* John\n*Sent:* Monday\n*To:* Ann\n*Subject:* RE: port\n",
    "________________________________\nVon: John\nGesendet: Montag\nAn: Ann\nBetreff: AW: Hafen\n",
    "De : John\nEnvoyé : lundi\nÀ : Ann\nObjet : RE: port\n",
    "差出人: 山田\n送信日時: 2024年1月1日\n宛先: 鈴木\n件名: 港\n",
    "---------- Forwarded message ---------\nFrom: John <j@example.org>\nDate: Mon\nSubject: port\nTo: Ann\n",
    "-------- Weitergeleitete Nachricht --------\nBetreff: Hafen\nDatum: Montag\nVon: John\nAn: Ann\n",
    "Begin forwarded message:\n",
]
ENDS = [
    "-- \nJohn Doe\nPort Authority",
    "Sent from my iPhone",
    "________________________\nports mailing list\nports@example.org",
]


def quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())


def words(text: str) -> list[str]:
    return own_words(text).split()


@pytest.mark.parametrize("sender", [*SENDERS, *UNSURE])
def test_a_reply_is_its_own_words_above_below_and_between_what_it_quotes(sender: str) -> None:
    first, second = NEWS.splitlines()
    assert words(f"{REPLY}\n\n{sender}\n\n{quoted(NEWS)}\n") == REPLY.split()
    assert words(f"{sender}\n{quoted(NEWS)}\n\n{REPLY}\n\n-- \nAnn") == REPLY.split()
    assert words(f"{sender}\n> {first}\n{REPLY}\n>{second}\n{REPLY}") == REPLY.split() * 2


@pytest.mark.parametrize("announced", [*ANNOUNCED, *SENDERS])
def test_an_original_message_without_marks_is_what_it_quotes(announced: str) -> None:
    assert words(f"{REPLY}\n\n{announced}\n{NEWS}") == REPLY.split()


@pytest.mark.parametrize("announced", ANNOUNCED)
def test_a_mail_without_words_of_its_own_is_what_it_quotes(announced: str) -> None:
    assert words(f"{announced}\n{NEWS}") == NEWS.split()
    assert words(f"FYI\n\n{announced}\n{NEWS}\n\n-- \nJohn") == ["FYI", *NEWS.split()]
    assert (
        words(f"Same here.\n\n{SENDERS[0]}\n{quoted(f'Thanks!{chr(10)}{announced}{chr(10)}{NEWS}')}")[-17:]
        == NEWS.split()[-17:]
    )


@pytest.mark.parametrize("end", ENDS)
def test_signatures_are_left_out_and_headers_too(end: str) -> None:
    headers = "Received: from a\n\tby b\nFrom: Ann\nSubject: Re: port\nX-Loop: 1\n"
    assert words(f"{headers}\n{REPLY}\n\n{end}\n") == REPLY.split()
    assert words(f"{REPLY}\n\n{end}\n\n{SENDERS[0]}\n{quoted(NEWS)}") == REPLY.split()
    assert words(f"{REPLY}\n\n{end}\n\n{ANNOUNCED[0]}\n{NEWS}") == REPLY.split()


@pytest.mark.parametrize(
    "text",
    [
        NEWS,
        "He wrote:\nthe port is closed",
        "Note: the minister said at 10:30:\nthe port is closed",
        "To: be\nTo: or not",
        "From: here to there",
        "one\n--\n" + "two\n" * 30,
        "a -> b, 3 > 2",
        "Date: is what I call a text with a colon",
    ],
)
def test_a_text_that_only_looks_like_a_mail_is_kept(text: str) -> None:
    assert words(text) == text.split()


def test_a_reply_is_a_copy_of_what_it_quotes_only_if_it_says_nothing_itself() -> None:
    reply, nod = f"{REPLY}\n\n{SENDERS[0]}\n{quoted(NEWS)}", f"+1\n\n{SENDERS[3]}\n{quoted(NEWS)}"
    assert ndd.collapse([NEWS, reply, nod], recipe=RECIPE).hits == [NEWS, reply]
    assert ndd.collapse([NEWS + REPLY, reply]).hits == [NEWS + REPLY]  # what it is for: these were copies
    assert len(ndd.collapse([f"{REPLY}\n{quoted(NEWS)}", f"{quoted(REPLY)}\n{NEWS}"], recipe=RECIPE)) == 2
    assert ndd.Recipe.parse(RECIPE.id) == RECIPE


@given(
    st.lists(st.sampled_from([*SENDERS, *ANNOUNCED, *ENDS, NEWS, REPLY, quoted(NEWS), "", "--"]) | texts).map("\n".join)
)
def test_no_word_is_invented_and_none_is_lost_where_nothing_else_is_left(text: str) -> None:
    found = words(text)
    given_ = text.replace(">", " ").replace("＞", " ").split()
    assert set(" ".join(found).replace(">", " ").replace("＞", " ").split()) <= set(given_)


@pytest.mark.parametrize(
    "text",
    [
        "> " * 500_000,
        "x\n> y\n" * 100_000,
        "a:\n" * 100_000,
        "From: x\nTo: y\nz\n" * 30_000,
        "To: x\n" * 100_000,
        ("On " + "wrote " * 49 + ":\n") * 3_000,
        ("Am " + "schrieb " * 35 + ":\n") * 3_000,
        "--\n" * 100_000,
        " " * 1_000_000,
        ("-" * 299 + "\n") * 3_000,
        ("<" + "a@" * 140 + ":\n") * 3_000,
        "\n".join(">" * i + " x" for i in range(1_500)),
    ],
    ids=lambda text: repr(text[:12]),
)
@pytest.mark.once
def test_a_text_made_to_be_slow_takes_time_in_proportion_to_its_length(text: str) -> None:
    started = time.process_time()
    own_words(text)
    assert time.process_time() - started < 10
