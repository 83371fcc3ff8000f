"""Take from a mail, or a reply in a forum, the words of its author.

Left out are the headers, lines quoted with ">", the line that says who wrote them, the original message that follows an
answer or is forwarded, and signatures. A mail of fewer than _FEWEST words of its own ("Thanks!", "FYI") says what it
quotes: it is read as that message, behind its own words.

Every pattern reads one line, of which the first _LONGEST characters count, and has a bounded number of choices.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from ndd_search.core.text.unicode_tables import UNSPACED_CLASS

_FEWEST = 6  # words of its own that a mail needs: they make four shingles of three words, the fewest that are compared
_DEEPEST = 8  # messages inside one another that are looked into
_LONGEST = 300  # characters of a line, or of three lines, that a pattern reads
_MOST_HEADERS = 200  # lines
_SIGNATURE_LINES = 15  # below its "--": more of them are text
_WORD = re.compile(rf"[{UNSPACED_CLASS}]|[^\W{UNSPACED_CLASS}]+")

# What says who wrote the lines below, by language: how it begins, the verb, and whether the name may follow the verb.
_WROTE = (
    ("On", "wrote|writes", False),
    ("Am", "schrieb", True),
    ("Den", "skrev", True),
    ("Le", "a écrit", False),
    ("El", "escribió", False),
    ("Em", "escreveu", False),
    ("Il", "ha scritto", False),
    ("Op", "schreef", True),
    ("W dniu|Dnia", r"napisał(?:\(a\)|a)?|pisze", False),
    ("Dne|Dňa", r"napsal(?:\(a\)|a)?|napísal(?:\(a\)|a)?", False),
)
_SAYS = (
    "wrote|writes|said|says|schrieb|skrev|a écrit|escribió|escreveu|ha scritto|schreef|napisał|napisała|pisze|napsal"
    r"|пишет|написал(?:а|\(а\))?|пише|написав|kirjoitti|írta|a scris|έγραψε|yazdı|đã viết|menulis"
)
_SAYS_UNSPACED = "写道|寫道|のメール|は書きました|님이 작성"
_DATED = "|".join(rf"(?:{first})\b.{{3,200}}(?:{verb})(?!\w).{{0,{80 * named}}}" for first, verb, named in _WROTE)
_ATTRIBUTION = re.compile(
    rf"(?:(?P<dated>{_DATED})|.{{1,200}}\b(?:{_SAYS})(?!\w).{{0,40}}|.{{1,200}}(?:{_SAYS_UNSPACED})"
    r"|.{0,200}<\S{1,80}@\S{1,80}>.{0,40})\s?[:：]"
)
_ADDRESS, _TIME = re.compile(r"<\S{1,80}@\S{1,80}>"), re.compile(r"\d{1,2}[:.h時时]\s?\d\d")

# The headers of mail programs; the sender comes first in those above an original message.
_SENDER = "From|Von|De|Da|Van|Från|Fra|Od|От|Від|Lähettäjä|Kimden|差出人|发件人|寄件者|보낸 사람"
_SUBJECT = (
    "Subject|Betreff|Objet|Asunto|Assunto|Oggetto|Onderwerp|Ämne|Emne|Temat|Předmět|Тема|Aihe|Konu|件名|主题|主旨|제목"
)
_OTHERS = (
    "Sent|Date|To|Cc|Bcc|Reply-To|Message-ID|In-Reply-To|References|Received|Return-Path|MIME-Version|Content-[a-z-]+"
    "|X-[a-z-]+|List-[a-z-]+|User-Agent|Delivered-To|DKIM-Signature|Importance|Attachments|Gesendet|Datum|An|Kopie"
    "|Envoyé|À|Enviado(?: el)?|Fecha|Para|Data|Inviato|A|Verzonden|Aan|Skickat|Sendt|Till|Til|Wysłano|Do|Odesláno|Komu"
    "|Отправлено|Дата|Кому|Копия|Vastaanottaja|Gönderme Tarihi|Kime|送信日時|宛先"
    "|发送时间|收件人|抄送|收件者|보낸 날짜|받는 사람"
)
_HEADER = re.compile(rf"\*?(?:({_SENDER})|({_SUBJECT})|{_OTHERS})\*?\s?[:：]\*?(?!//)", re.IGNORECASE)
_ANNOUNCED = re.compile(  # the line above an original message
    r"[-_=*\s]{0,40}(?:Original[ -]?(?:Message|Appointment)|Forwarded message(?: from .{1,100})?|Forwarded by .{1,100}"
    r"|Begin forwarded message|Ursprüngliche Nachricht|Originalnachricht|(?:Anfang der )?weitergeleiteten? Nachricht"
    r"|Message (?:d'origine|d’origine|original|transféré)|Mensaje (?:original|reenviado)"
    r"|Mensagem (?:original|encaminhada)|Messaggio (?:originale|inoltrato)|(?:Oorspronkelijk|Doorgestuurd) bericht"
    r"|(?:Ursprungligt|Vidarebefordrat) meddelande|(?:Oprindelig|Videresendt) meddelelse"
    r"|(?:Opprinnelig|Videresendt) melding"
    r"|Wiadomość oryginalna|Původní zpráva|(?:Исходное|Пересылаемое|Пересланное) сообщение|Orijinal İleti"
    r"|原始邮件|转发的?邮件|原始郵件|元のメッセージ|転送メッセージ|원본 메시지)\s?[:：]?[-_=*\s]{0,40}",
    re.IGNORECASE,
)
_MARK = re.compile(r"[ \t]{0,4}[>＞] ?")
_RULE = re.compile(r"_{20,}")  # above the footer of a mailing list
_DEVICE = re.compile(
    r"(?:Sent (?:from (?:my|Mail for|Outlook|Yahoo)|via)|Get Outlook for|Von mein.{1,40} gesendet|Gesendet von"
    r"|Envoyé (?:de|depuis)|Enviado (?:desde|do meu|de mi)|Inviato da|Verzonden vanaf|Skickat från|Отправлено с"
    r"|iPhoneから送信).{0,80}",
    re.IGNORECASE,
)


class _Parts(NamedTuple):
    """A message, cut. own: the words of its author. quoted: what it quotes, without the outermost marks."""

    own: str
    quoted: str


def own_words(text: str) -> str:
    """Return what the author of a mail wrote, in lines; if that is next to nothing, what it quotes behind it."""
    said = []
    for _ in range(_DEEPEST):
        own, text = _cut(text.strip())
        said.append(own)
        if not text or len(list(islice(_WORD.finditer(own), _FEWEST))) == _FEWEST:
            return "\n".join(said)
    return "\n".join([*said, text])


def _cut(text: str) -> _Parts:
    lines = text.splitlines()
    own: list[str] = []
    quoted: list[str] = []
    signature = len(lines)  # where in `own` one may begin
    at = _headers_end(lines, 0)
    while at < len(lines):
        is_marked = _MARK.match(lines[at]) is not None
        introduced = 0 if is_marked else _introduced(lines, at)
        original = 0 if is_marked or introduced else _original(lines, at)
        if is_marked or introduced or original:
            _drop_signature(own, signature)
            signature = len(lines)
        if is_marked:
            quoted.append(_MARK.sub("", lines[at], count=1))
        elif original:
            quoted += lines[original:]
            break
        elif not introduced:
            line = _read(lines[at])
            if (line == "--" or _RULE.fullmatch(line)) and not 0 <= len(own) - signature <= _SIGNATURE_LINES:
                signature = len(own)
            own += [] if _DEVICE.fullmatch(line) else [lines[at]]
        at = introduced or at + 1
    _drop_signature(own, signature)
    return _Parts("\n".join(own), "\n".join(quoted))


def _drop_signature(own: list[str], begin: int) -> None:
    if len(own) - begin <= _SIGNATURE_LINES + 1:  # more lines are no signature
        del own[begin:]


def _read(line: str) -> str:
    return line[:_LONGEST].strip()


def _headers_end(lines: Sequence[str], at: int) -> int:
    """Return where the headers that begin here end, with their continued lines; `at` if these are no headers.

    There are at least two, and a sender or subject is among them.
    """
    number, telling, end = 0, False, at
    for line in lines[at : at + _MOST_HEADERS]:
        continued = number > 0 and line[:1] in (" ", "\t") and bool(line.strip())
        header = None if continued else _HEADER.match(_read(line))
        if not (continued or header):
            break
        number += header is not None
        telling |= header is not None and header.lastindex is not None
        end += 1
    return end if number > 1 and telling else at


def _attribution_end(lines: Sequence[str], at: int, sure: bool = False) -> int:
    """Return the end of the line, perhaps broken in three, that says who wrote what follows; 0 if this is none.

    sure: it has an address, or the form of mail programs with a time, so that what follows needs no marks.
    """
    joined = ""
    for end, line in enumerate(lines[at : at + 3], at + 1):
        if not line.strip() or _MARK.match(line):
            return 0
        joined = f"{joined} {_read(line)}".strip()[:_LONGEST]
        if joined.endswith((":", "：")):
            found = _ATTRIBUTION.fullmatch(joined)
            sent = found and (_ADDRESS.search(joined) or (found["dated"] and _TIME.search(joined)))
            return end if found and (sent or not sure) else 0
    return 0


def _introduced(lines: Sequence[str], at: int) -> int:
    """Return the end of the lines that say who wrote the marked lines below them; 0 if these are none."""
    end = _attribution_end(lines, at)
    following = [line for line in lines[end : end + 4] if line.strip()] if end else []
    return end if following and _MARK.match(following[0]) else 0


def _original(lines: Sequence[str], at: int) -> int:
    """Return where an original message begins whose lines are not marked; 0 if none is announced here."""
    line = _read(lines[at])
    if _ANNOUNCED.fullmatch(line):
        return at + 1
    header = _HEADER.match(line)
    if header and header[1] and _headers_end(lines, at) > at:
        return at
    return _attribution_end(lines, at, sure=True)
