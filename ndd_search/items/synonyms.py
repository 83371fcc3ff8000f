"""Lists of words that stand for one another in names: abbreviations and the short forms of first names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Synonyms = Mapping[str, tuple[str, ...]]

_ABBREVIATIONS = """
st saint street | ste saint suite | sts saints | mt mount mountain | ft fort | rd road | ave avenue | av avenue
blvd boulevard | ln lane | dr drive doctor | ct court | pl place | sq square | hwy highway | pkwy parkway
ter terrace | cres crescent | cl close | gdns gardens | pk park | bldg building | apt apartment | flr floor
jct junction | n north | s south | e east | w west | ne northeast | nw northwest | se southeast | sw southwest
intl international | int international | natl national | nat national | muni municipal | reg regional | rgnl regional
arpt airport | apt airport apartment | fld field | afb air-force-base | stn station | sta station | univ university
ctr center | centre center | hosp hospital | inst institute | dept department | govt government | assn association
assoc associates association | co company county | corp corporation | inc incorporated | ltd limited | plc company
llc company | gmbh company | bros brothers | mfg manufacturing | svc service | svcs services | mr mister | mrs missis
prof professor | rev reverend | capt captain | col colonel | gen general | sgt sergeant | jr junior | sr senior
vs versus | etc etcetera | no number | nr number | vol volume | ed edition
"""
_NICKNAMES = """
abe abraham | al albert alan alfred alexander | alec alexander | alex alexander alexandra | alf alfred | andy andrew
annie ann anne anna | archie archibald | art arthur | barb barbara | bart bartholomew | becky rebecca | ben benjamin
bernie bernard | bert albert herbert robert | bess elizabeth | bessie elizabeth | beth elizabeth | betsy elizabeth
betty elizabeth | bill william | billy william | bob robert | bobby robert | cathy catherine katherine
charlie charles | chris christopher christine | chuck charles | connie constance | dan daniel | danny daniel
dave david | deb deborah | debbie deborah | dick richard | dolly dorothy | don donald | dot dorothy
ed edward edwin edmund | eddie edward edwin | eliza elizabeth | ellie eleanor ellen | elsie elizabeth | flo florence
frank francis franklin | fred frederick alfred | freddie frederick | gabe gabriel | gene eugene | geoff geoffrey
gerry gerald gerard | ginny virginia | greg gregory | gus augustus | hal harold henry | hank henry
harry harold henry | hattie harriet | hetty henrietta | ike isaac | jack john | jackie jacqueline | jake jacob
jamie james | jan janet | jeff jeffrey | jennie jennifer jane | jen jennifer | jenny jennifer jane
jerry gerald jeremiah | jess jessica | jessie jessica | jim james | jimmy james | joe joseph | joey joseph
johnny john | jon jonathan john | josh joshua | kate katherine catherine | kathy katherine catherine
katie katherine catherine | ken kenneth | kit christopher katherine | kitty katherine catherine | larry lawrence
len leonard | lenny leonard | leo leonard | lettie letitia | lisa elizabeth | liz elizabeth | lizzie elizabeth
lou louis louise | lucy lucille | maggie margaret | mandy amanda | marge margaret | margie margaret | mat matthew
matt matthew | max maximilian | may mary | meg margaret | mick michael | mike michael | millie mildred
minnie wilhelmina | moll mary | molly mary | nan ann | nancy ann | nat nathaniel nathan | nate nathaniel nathan
ned edward | nell eleanor | nellie eleanor ellen helen | nick nicholas | nora eleanor honora | pam pamela
pat patrick patricia | patty patricia | peg margaret | peggy margaret | pete peter | phil philip phillip | polly mary
ray raymond | reg reginald | rick richard | ricky richard | rob robert | robbie robert | ron ronald
rose rosemary rosalind | ross roscoe | sadie sarah | sally sarah | sal sarah | sam samuel samantha
sandy alexander sandra | sid sidney | steve stephen steven | stu stuart | sue susan | susie susan
ted edward theodore | teddy edward theodore | terry terence theresa | tess theresa | tim timothy | toby tobias
tom thomas | tommy thomas | tony anthony | val valerie valentine | vic victor victoria | vicky victoria | vin vincent
vince vincent | wally walter | walt walter | wat walter | wes wesley | wilf wilfred | will william | willie william
win winifred | winnie winifred | zach zachary
"""


def _read(text: str) -> Synonyms:
    found: dict[str, tuple[str, ...]] = {}
    for entry in text.replace("\n", " | ").split("|"):
        word, *readings = entry.split() or [""]
        if word:
            found[word] = tuple(dict.fromkeys((*found.get(word, ()), *readings)))
    return found


LISTS: Mapping[str, Synonyms] = {
    "english-abbreviations": _read(_ABBREVIATIONS),
    "english-nicknames": _read(_NICKNAMES),
}


def synonyms_of(given: str | Mapping[str, str | Sequence[str]] | Sequence[object] | None) -> Synonyms:
    """Return the readings of each abbreviated word.

    given: the name of a list, a mapping such as {"st": ["saint", "street"]}, or several of either.
    Raises ValueError for an unknown name.
    """
    if given is None:
        return {}
    if isinstance(given, str):
        if given not in LISTS:
            raise ValueError(f"synonyms must be one of {', '.join(LISTS)}, or a mapping of words, got {given!r}")
        return LISTS[given]
    if isinstance(given, Mapping):
        return {
            str(word).casefold(): tuple(str(one).casefold() for one in ([to] if isinstance(to, str) else to))
            for word, to in given.items()
        }
    joined: dict[str, tuple[str, ...]] = {}
    for part in given:
        for word, readings in synonyms_of(part).items():  # type: ignore[arg-type]
            joined[word] = tuple(dict.fromkeys((*joined.get(word, ()), *readings)))
    return joined
