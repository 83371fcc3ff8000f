"""Search in PostgreSQL without near-duplicates: a column keeps the sketches, an index finds copies in the whole table.

sudo apt-get install postgresql && sudo service postgresql start
sudo -u postgres createuser --superuser "$(whoami)" && createdb news
pip install "psycopg[binary]"
python examples/postgresql.py
"""

import psycopg
from psycopg.rows import dict_row

import ndd_search as ndd
from ndd_search.core.sketching import resemblance

STEEL = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."
FERRY = "The ferry to the island was late on Friday."
RANKED = """SELECT id, body, sketch FROM articles, websearch_to_tsquery('english', %s) AS query
    WHERE to_tsvector('english', body) @@ query
    ORDER BY ts_rank(to_tsvector('english', body), query) DESC, id LIMIT %s OFFSET %s"""


def connect(address="postgresql:///news"):
    """Return a connection. The trigger removes the sketch of a text that changes, whoever changes it."""
    db = psycopg.connect(address, autocommit=True, row_factory=dict_row)
    db.execute("CREATE TABLE IF NOT EXISTS articles (id bigint PRIMARY KEY, body text, sketch int[])")
    db.execute("CREATE INDEX IF NOT EXISTS words ON articles USING gin (to_tsvector('english', body))")
    db.execute("CREATE INDEX IF NOT EXISTS keys ON articles USING gin ((sketch[1:8]))")
    db.execute("""CREATE OR REPLACE FUNCTION forget_sketch() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN NEW.sketch := NULL; RETURN NEW; END'""")
    db.execute("""CREATE OR REPLACE TRIGGER forget_sketch BEFORE UPDATE ON articles FOR EACH ROW
        WHEN (NEW.body IS DISTINCT FROM OLD.body AND NEW.sketch IS NOT DISTINCT FROM OLD.sketch)
        EXECUTE FUNCTION forget_sketch()""")
    return db


def add(db, articles):
    rows = [(id, body, ndd.sketch(body).tolist()) for id, body in articles]
    db.cursor().executemany("INSERT INTO articles VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", rows)


def search(db, words):
    """Return the pages of a search. A row without a sketch is sketched when it is read."""

    def fetch(start, count):
        return db.execute(RANKED, (words, count, start)).fetchall()

    return ndd.stream(fetch, text="body", sketch="sketch", key=words)


def find_duplicates(db, text, least=0.5):
    """Return the ids of the near-duplicates of a text. The first eight values of a sketch are its keys."""
    wanted = ndd.sketch(text).tolist()
    rows = db.execute("SELECT id, sketch FROM articles WHERE sketch[1:8] && %s::int[]", [wanted[:8]])
    return [row["id"] for row in rows if resemblance(row["sketch"], wanted, k=64) >= least]


if __name__ == "__main__":
    with connect() as news:
        add(news, [(1, STEEL), (2, f"UPDATE - {STEEL}"), (3, FERRY)])
        for group in search(news, "friday").page(size=10, from_=0).groups:
            print(group.hit["id"], "stands for", [copy.hit["id"] for copy in group.duplicates])
        print("near-duplicates of 1:", find_duplicates(news, STEEL))
