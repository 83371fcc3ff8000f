"""Words that show an edge at the start of a text (see `edges`), in small letters, by kind."""

WORDS = {
    "mark": (  # at the start, before a colon or dash
        "update updated updates breaking exclusive corrected correction refile watch video live photos analysis rt "
        "re fw fwd eilmeldung eil aktualisiert berichtigung aw wg alerte urgent flash màj mise à jour exclusif "
        "última hora urgente actualización actualiza aggiornamento ultimora esclusiva atualização exclusivo "
    ),
    "agency": (  # in brackets or before a sign
        "afp ap reuters dpa epd kna sid apa sda efe ansa agi adnkronos lusa upi pa press-association xinhua tass "
        "itar-tass interfax ria kyodo yonhap bernama pti ians anp belga ritzau ntb tt stt pap ctk čtk mti wire "
        "newswire prnewswire businesswire agencia agencies agenturen agences ats europapress notimex bloomberg "
    ),
    "by": (  # a byline begins with it
        "by von par por di da "
    ),
    "joins": (  # joins words of a name
        "and of the at in for und der die das des im y de del la las los el et le les du e di da do dos das van von & "
    ),
}
