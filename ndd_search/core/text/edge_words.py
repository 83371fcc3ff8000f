"""Words that show an edge of a text (see `edges`), in small letters, by kind."""

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
    "source": (  # before the name of a source
        "source sources reporting writing editing edited additional compiled via photo image credit courtesy "
        "quelle quellen redaktion foto fuente fuentes editado edición redacción con información fonte fonti crédit "
        "crédits avec rédaction mit "
    ),
    "more": (  # a line that leads on begins with it alone,
        "weiterlesen weiterhören "
    ),
    "begins": (  # with this one,
        "read continue click full more find see learn mehr lesen hier zum lire en voir plus leer seguir ver más "
        "leia saiba ler leggi continua "
    ),
    "goes_on": (  # followed by this one,
        "more full reading here story article on at out the auf unter bei dazu sie klicken artikel la le aussi "
        "savoir suite sur más en leyendo aquí mais aqui tutto anche a "
    ),
    "rights": (  # or with this one and a year
        "© copyright (c) "
    ),
    "site": (  # in the name of a site
        "times post news daily herald press tribune gazette star journal mail telegraph guardian observer "
        "chronicle today online radio tv info media magazine weekly report network blog zeitung nachrichten kurier "
        "rundschau anzeiger tageblatt presse bote noticias diario periódico actualités journal matin quotidiano "
        "giornale corriere notizie jornal folha correio notícias "
    ),
    "joins": (  # joins words of a name
        "and of the at in for und der die das des im y de del la las los el et le les du e di da do dos das van von & "
    ),
}
