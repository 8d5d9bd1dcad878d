"""Text tables in the layouts of real projects; the content is made up."""

from typing import Any

from tests.io.corpus.frame import Source, Table, of_files, of_tables, table

_DRUG_TRIPLES = """
D1,treats,X1
D1,treats,X2
D2,treats,X2
D3,treats,X1
G1,causes,X1
G2,causes,X2
G3,causes,X2
D1,targets,G1
D2,targets,G1
D3,targets,G2
"""
_DRUG_EDGES = {"treats": "D1>X1 D1>X2 D2>X2 D3>X1", "causes": "G1>X1 G2>X2 G3>X2", "targets": "D1>G1 D2>G1 D3>G2"}
_SPLITS = {"train.txt": slice(0, 6), "valid.txt": slice(6, 8), "test.txt": slice(8, None)}
_ENTITY_EDGES = {f"entity -{name}-> entity": edges for name, edges in _DRUG_EDGES.items()}


_RATINGS = "1,31,4.0,1260759144\n1,32,3.5,1260759179\n2,31,5.0,1260759182\n2,33,2.0,1260759185\n3,33,4.5,1260759205"
_RATED = "1>31 1>32 2>31 2>33 3>33"
_MOVIES = """
31,Toy Tale (1995),Adventure|Comedy
32,"Heat, The (1995)",Action
33,Grumpy Men (1993),Comedy|Romance|Action
"""
_MOVIE_GENRES = "31>Adventure 31>Comedy 32>Action 33>Comedy 33>Romance 33>Action"
_RATING_ROLES = {"userId": "source:user", "movieId": "target:movie", "rating": "", "timestamp": ""}


_CAST = "movie_id,actor_id\n1,ä1\n1,b2\n2,b2\n"
_CAST_GRAPH: dict[str, Any] = {
    "nodes": {"movie": 2, "actor": 2},
    "edges": {"movie -movie_actor-> actor": "1>ä1 1>b2 2>b2"},
}


def _primekg() -> Table:
    """Every edge of PrimeKG in both directions, with the index, id, type, name and origin of each end."""
    rows = (
        ("drug_protein", "target", "DB01", "drug", "Aspirol", "9796", "gene/protein", "PHYA"),
        ("drug_protein", "target", "DB02", "drug", "Bexin", "9796", "gene/protein", "PHYA"),
        ("drug_protein", "target", "DB02", "drug", "Bexin", "7918", "gene/protein", "GPAN"),
        ("indication", "indication", "DB01", "drug", "Aspirol", "9796", "disease", "sore head"),
        ("indication", "indication", "DB03", "drug", "Corin", "5044", "disease", "hives"),
        ("disease_protein", "associated with", "5044", "disease", "hives", "7918", "gene/protein", "GPAN"),
        ("disease_protein", "associated with", "9796", "disease", "sore head", "9796", "gene/protein", "PHYA"),
    )
    index = {("drug", "DB01"): 0, ("drug", "DB02"): 1, ("drug", "DB03"): 2, ("gene/protein", "9796"): 3,
             ("gene/protein", "7918"): 4, ("disease", "9796"): 5, ("disease", "5044"): 6}  # fmt: skip
    origin = {"drug": "DrugBank", "gene/protein": "NCBI", "disease": "MONDO"}

    def side(node_id: str, node_type: str, name: str) -> str:
        return f"{index[node_type, node_id]},{node_id},{node_type},{name},{origin[node_type]}"

    both = [line for name, shown, *ends in rows for line in (
        f"{name},{shown},{side(*ends[:3])},{side(*ends[3:])}", f"{name},{shown},{side(*ends[3:])},{side(*ends[:3])}"
    )]  # fmt: skip
    roles = {"relation": "relation", "display_relation": ""}
    for letter, end in (("x", "source"), ("y", "target")):
        roles |= {f"{letter}_index": f"same:{end}", f"{letter}_id": end, f"{letter}_type": f"{end} type",
                  f"{letter}_name": f"{end} name", f"{letter}_source": ""}  # fmt: skip
    return table("kg.csv", roles, "\n".join(both))


TEXTS: dict[str, Source] = {
    # ---- Knowledge graphs ------------------------------------------------------------------------
    # PrimeKG's kg.csv: types and names beside ids that several types share, and every edge in both directions.
    "primekg": of_tables(
        _primekg(),
        nodes={"drug": 3, "gene/protein": 2, "disease": 2},
        edges={
            "drug -drug_protein-> gene/protein": "DB01>9796 DB02>9796 DB02>7918",
            "drug -indication-> disease": "DB01>9796 DB03>5044",
            "disease -disease_protein-> gene/protein": "5044>7918 9796>9796",
            "gene/protein -drug_protein-> drug": "9796>DB01 9796>DB02 7918>DB02",
            "disease -indication-> drug": "9796>DB01 5044>DB03",
            "gene/protein -disease_protein-> disease": "7918>5044 9796>9796",
        },
        names={"drug": {"DB01": "Aspirol", "DB03": "Corin"}, "disease": {"9796": "sore head"}},
        notes=["both directions|backwards"],
    ),
    # PrimeKG's nodes.csv and edges.csv, joined by node_index.
    "primekg_nodes_and_edges": of_tables(
        table(
            "nodes.csv",
            {"node_index": "id", "node_id": "same:id", "node_type": "type", "node_name": "name", "node_source": ""},
            "0,DB01,drug,Aspirol,DrugBank\n1,DB02,drug,Bexin,DrugBank\n2,9796,disease,sore head,MONDO\n"
            "3,5044,disease,hives,MONDO\n4,7918,gene/protein,GPAN,NCBI",
        ),
        table(
            "edges.csv",
            {"relation": "relation", "display_relation": "", "x_index": "source", "y_index": "target"},
            "indication,indication,0,2\nindication,indication,1,3\nindication,indication,0,3\n"
            "disease_protein,associated with,2,4\ndisease_protein,associated with,3,4",
        ),
        nodes={"drug": 2, "disease": 2, "gene/protein": 1},
        edges={"drug -indication-> disease": "0>2 1>3 0>3", "disease -disease_protein-> gene/protein": "2>4 3>4"},
        names={"drug": {"0": "Aspirol", "1": "Bexin"}, "gene/protein": {"4": "GPAN"}},
    ),
    # DRKG's drkg.tsv: triples without a header, whose ids begin with their types.
    "drkg": of_tables(
        table(
            "drkg.tsv",
            {"1": "source", "2": "relation", "3": "target"},
            """
Gene::2157,bioarx::HumGenHumGen:Gene:Gene,Gene::5264
Gene::2157,bioarx::HumGenHumGen:Gene:Gene,Gene::2158
Gene::5264,bioarx::HumGenHumGen:Gene:Gene,Gene::2158
Compound::DB01,DRUGBANK::treats::Compound:Disease,Disease::MESH:D1
Compound::DB02,DRUGBANK::treats::Compound:Disease,Disease::MESH:D1
Compound::DB02,DRUGBANK::treats::Compound:Disease,Disease::MESH:D2
Compound::DB01,GNBR::E::Compound:Gene,Gene::2157
Compound::DB02,GNBR::E::Compound:Gene,Gene::5264
Gene::2158,GNBR::G::Gene:Disease,Disease::MESH:D2
Gene::2157,GNBR::G::Gene:Disease,Disease::MESH:D2
""",
            "\t",
            header=False,
        ),
        nodes={"Gene": 3, "Compound": 2, "Disease": 2},
        edges={
            "Gene -bioarx::HumGenHumGen:Gene:Gene-> Gene": 3,
            "Compound -DRUGBANK::treats::Compound:Disease-> Disease": 3,
            "Compound -GNBR::E::Compound:Gene-> Gene": 2,
            "Gene -GNBR::G::Gene:Disease-> Disease": 2,
        },
    ),
    # KGX as TSV: categories of the Biolink model, edges with their own ids.
    "kgx": of_tables(
        table(
            "merged-kg_nodes.tsv",
            {"id": "id", "category": "type", "name": "name", "provided_by": ""},
            "HGNC:1,biolink:Gene,A1BG,hgnc\nHGNC:2,biolink:Gene,A2M,hgnc\nMONDO:1,biolink:Disease,hives,mondo\n"
            "MONDO:2,biolink:Disease,ague,mondo\nCHEBI:1,biolink:SmallMolecule,aspirol,chebi",
            "\t",
        ),
        table(
            "merged-kg_edges.tsv",
            {"id": "", "subject": "source", "predicate": "relation", "object": "target", "knowledge_level": ""},
            "e1,HGNC:1,biolink:gene_associated_with_condition,MONDO:1,asserted\n"
            "e2,HGNC:2,biolink:gene_associated_with_condition,MONDO:1,asserted\n"
            "e3,HGNC:2,biolink:gene_associated_with_condition,MONDO:2,asserted\n"
            "e4,CHEBI:1,biolink:treats,MONDO:1,predicted",
            "\t",
        ),
        nodes={"Gene": 2, "Disease": 2, "SmallMolecule": 1},
        edges={
            "Gene -gene_associated_with_condition-> Disease": "HGNC:1>MONDO:1 HGNC:2>MONDO:1 HGNC:2>MONDO:2",
            "SmallMolecule -treats-> Disease": "CHEBI:1>MONDO:1",
        },
        names={"Gene": {"HGNC:1": "A1BG"}, "Disease": {"MONDO:2": "ague"}},
    ),
    # Edges with label and category of both ends in the same row, as Monarch and ROBOKOP publish them.
    "monarch_denormalised_edges": of_tables(
        table(
            "monarch-kg-denormalized-edges.tsv",
            {
                "id": "",
                "subject": "source",
                "subject_label": "source name",
                "subject_category": "source type",
                "predicate": "relation",
                "object": "target",
                "object_label": "target name",
                "object_category": "target type",
            },
            """
u1,HGNC:1,A1BG,biolink:Gene,biolink:causes,MONDO:1,hives,biolink:Disease
u2,HGNC:2,A2M,biolink:Gene,biolink:causes,MONDO:1,hives,biolink:Disease
u3,HGNC:2,A2M,biolink:Gene,biolink:causes,MONDO:2,ague,biolink:Disease
u4,MONDO:1,hives,biolink:Disease,biolink:has_phenotype,HP:1,itch,biolink:PhenotypicFeature
u5,MONDO:2,ague,biolink:Disease,biolink:has_phenotype,HP:2,shiver,biolink:PhenotypicFeature
""",
            "\t",
        ),
        nodes={"Gene": 2, "Disease": 2, "PhenotypicFeature": 2},
        edges={
            "Gene -causes-> Disease": "HGNC:1>MONDO:1 HGNC:2>MONDO:1 HGNC:2>MONDO:2",
            "Disease -has_phenotype-> PhenotypicFeature": "MONDO:1>HP:1 MONDO:2>HP:2",
        },
        names={"Gene": {"HGNC:2": "A2M"}, "PhenotypicFeature": {"HP:1": "itch"}},
    ),
    # Typed triples with head_type and tail_type.
    "typed_triples_head_tail": of_tables(
        table(
            "kg.tsv",
            {
                "head": "source",
                "head_type": "source type",
                "relation": "relation",
                "tail": "target",
                "tail_type": "target type",
            },
            """
Ann,person,lives_in,Bonn,city
Bob,person,lives_in,Bonn,city
Cem,person,lives_in,Ulm,city
Ann,person,knows,Bob,person
Cem,person,knows,Ann,person
Bonn,city,part_of,Rhineland,region
Ulm,city,part_of,Swabia,region
""",
            "\t",
        ),
        nodes={"person": 3, "city": 2, "region": 2},
        edges={
            "person -lives_in-> city": "Ann>Bonn Bob>Bonn Cem>Ulm",
            "person -knows-> person": "Ann>Bob Cem>Ann",
            "city -part_of-> region": "Bonn>Rhineland Ulm>Swabia",
        },
    ),
    # OpenBioLink's edges: five columns without a header (node, relation, node, score, origin).
    "openbiolink": of_tables(
        table(
            "edges.csv",
            {"1": "source", "2": "relation", "3": "target", "4": "", "5": ""},
            """
NCBIGENE:1,GENE_DIS,DOID:9,800,DisGeNet
NCBIGENE:2,GENE_DIS,DOID:9,700,DisGeNet
NCBIGENE:2,GENE_DIS,DOID:8,900,DisGeNet
NCBIGENE:1,GENE_GENE,NCBIGENE:2,700,STRING
NCBIGENE:3,GENE_GENE,NCBIGENE:2,750,STRING
NCBIGENE:3,GENE_GO,GO:77,,GO
""",
            "\t",
            header=False,
        ),
        refused="edges.csv",
    ),
    # Hetionet's tables: kinds in words, ids that repeat them, abbreviated relations in a gzipped .sif.
    "hetionet": of_tables(
        table(
            "hetionet-v1.0-nodes.tsv",
            {"id": "id", "name": "name", "kind": "type"},
            "Gene::1,A1BG,Gene\nGene::2,A2M,Gene\nDisease::DOID:1,hives,Disease\n"
            "Biological Process::GO:1,healing,Biological Process",
            "\t",
        ),
        table(
            "hetionet-v1.0-edges.sif.gz",
            {"source": "source", "metaedge": "relation", "target": "target"},
            "Gene::1,GpBP,Biological Process::GO:1\nGene::2,GpBP,Biological Process::GO:1\n"
            "Disease::DOID:1,DaG,Gene::1\nGene::1,Gr>G,Gene::2",
            "\t",
        ),
        nodes={"Gene": 2, "Disease": 1, "Biological Process": 1},
        edges={
            "Gene -GpBP-> Biological Process": 2,
            "Disease -DaG-> Gene": [("Disease::DOID:1", "Gene::1")],
            "Gene -Gr>G-> Gene": [("Gene::1", "Gene::2")],
        },
        names={"Disease": {"Disease::DOID:1": "hives"}},
    ),
    # FB15k, WN18RR and most benchmarks of link prediction: train.txt, valid.txt, test.txt without headers.
    "fb15k": of_files(
        {name: "\n".join(_DRUG_TRIPLES.split()[part]).replace(",", "\t") + "\n" for name, part in _SPLITS.items()},
        nodes={"entity": 8},
        edges=_ENTITY_EDGES,
    ),
    # One CSV of triples with a usual header.
    "triples_with_header": of_tables(
        table("triples.csv", {"head": "source", "relation": "relation", "tail": "target"}, _DRUG_TRIPLES),
        nodes={"entity": 8},
        edges=_ENTITY_EDGES,
    ),
    # One TSV of triples with no header.
    "triples_without_header": of_tables(
        table("graph.tsv", {"1": "source", "2": "relation", "3": "target"}, _DRUG_TRIPLES, "\t", header=False),
        nodes={"entity": 8},
        edges=_ENTITY_EDGES,
    ),
    # Triples in the order head, tail, relation, as multi-hop reasoning benchmarks have them; no header.
    "triples_relation_last": of_tables(
        table(
            "raw.txt",
            {"1": "source", "2": "target", "3": "relation"},
            "\n".join(f"{h},{t},{r}" for h, r, t in (row.split(",") for row in _DRUG_TRIPLES.split())),
            "\t",
            header=False,
        ),
        refused="raw.txt",
    ),
    # OpenKE's train2id.txt: a count, then head, tail, relation as numbers; names in other files.
    "openke": of_files(
        {
            "train2id.txt": "5\n0 2 0\n1 3 0\n0 3 0\n0 1 1\n1 0 1\n",
            "entity2id.txt": "4\n" + "Ann\t0\nBob\t1\nBonn\t2\nUlm\t3\n",
            "relation2id.txt": "2\nlives_in\t0\nknows\t1\n",
        },
        refused="train2id.txt|entity2id.txt|relation2id.txt",
    ),
    # ConceptNet's assertions: five columns without a header, the relation second and the ends after it.
    "conceptnet": of_files(
        {
            "assertions.csv.gz": "".join(
                [
                    f'/a/[/r/{r}/,/c/en/{a}/,/c/en/{b}/]\t/r/{r}\t/c/en/{a}\t/c/en/{b}\t{{"weight": 1.0}}\n'
                    for r, a, b in [
                        ("Synonym", "cat", "puss"),
                        ("IsA", "cat", "animal"),
                        ("IsA", "dog", "animal"),
                        ("RelatedTo", "dog", "cat"),
                    ]
                ]
            )
        },
        refused="assertions.csv.gz",
    ),
    # Wikipedia's clickstream: prev, curr, type, n; `type` is the kind of click and n how often.
    "wikipedia_clickstream": of_tables(
        table(
            "clickstream-enwiki.tsv",
            {"prev": "source", "curr": "target", "type": "relation", "n": ""},
            "Cat,Dog,link,12\nCat,Lion,link,40\nDog,Cat,link,31\nDog,Wolf,other,11\nLion,Cat,link,19\nWolf,Dog,link,25",
            "\t",
        ),
        refused="clickstream-enwiki.tsv",
    ),
    # ---- Ratings and recommendation --------------------------------------------------------------
    # MovieLens' ratings.csv alone.
    "movielens_ratings": of_tables(
        table("ratings.csv", _RATING_ROLES, _RATINGS),
        nodes={"user": 3, "movie": 3},
        edges={"user -> movie": _RATED},
        attributes={"user -> movie": {"rating": "number", "timestamp": "time"}},
        notes=["rating", "timestamp was read as times, as its integers are seconds"],
    ),
    # MovieLens' folder: ratings, movies with genres in one cell, tags, links to other databases.
    "movielens": of_tables(
        table("ratings.csv", _RATING_ROLES, _RATINGS),
        table("movies.csv", {"movieId": "id:movie", "title": "name", "genres": "list:genre"}, _MOVIES),
        table(
            "tags.csv",
            {"userId": "source:user", "movieId": "target:movie", "tag": "", "timestamp": ""},
            "1,31,funny,1445714994\n3,32,long,1445714996\n3,33,funny,1445714992",
        ),
        nodes={"user": 3, "movie": 3, "genre": 4},
        edges={
            "user -ratings-> movie": _RATED,
            "user -tags-> movie": "1>31 3>32 3>33",
            "movie -> genre": _MOVIE_GENRES,
        },
        names={"movie": {"31": "Toy Tale (1995)", "32": "Heat, The (1995)"}},
        attributes={
            "user -ratings-> movie": {"rating": "number", "timestamp": "time"},
            "user -tags-> movie": {"tag": ["funny", "long", "funny"], "timestamp": "time"},
            "movie -> genre": {},
        },
        notes=["rating"],
    ),
    # MovieLens' movies.csv alone: the genres of each movie in one cell.
    "movielens_movies": of_tables(
        table("movies.csv", {"movieId": "id:movie", "title": "name", "genres": "list:genre"}, _MOVIES),
        nodes={"movie": 3, "genre": 4},
        edges={"movie -> genre": _MOVIE_GENRES},
        names={"movie": {"33": "Grumpy Men (1993)"}},
    ),
    # MovieLens 1M: .dat files with :: between the cells and no header.
    "movielens_1m": of_files(
        {
            "ratings.dat": "1::31::5::978300760\n1::32::3::978302109\n2::31::4::978301968\n",
            "movies.dat": "31::Toy Tale (1995)::Animation|Comedy\n32::Heat (1995)::Action\n",
            "users.dat": "1::F::1::10::48067\n2::M::56::16::70072\n",
        },
        refused="::|ratings.dat|movies.dat|users.dat",
    ),
    # MovieLens 100K: u.data with tabs and no header, an unusual suffix.
    "movielens_100k": of_files(
        {"u.data": "196\t242\t3\t881250949\n186\t302\t3\t891717742\n22\t377\t1\t878887116\n244\t51\t2\t880606923\n"},
        refused="u.data",
    ),
    # Last.fm of HetRec 2011: .dat files with headers, listening counts as weights, friends among users.
    "lastfm": of_tables(
        table("artists.dat", {"id": "id:artist", "name": "name", "url": ""}, "51,Duran,u\n52,Morch,v\n53,Air,w", "\t"),
        table(
            "user_artists.dat",
            {"userID": "source:user", "artistID": "target:artist", "weight": "weight"},
            "2,51,13883\n2,52,11690\n3,51,100\n4,53,7",
            "\t",
        ),
        table("user_friends.dat", {"userID": "source:user", "friendID": "target:user"}, "2,3\n3,2\n3,4\n4,3", "\t"),
        nodes={"user": 3, "artist": 3},
        edges={
            "user -user_artists-> artist": "2>51*13883 2>52*11690 3>51*100 4>53*7",
            "user -> user": "2>3 3>2 3>4 4>3",
        },
        names={"artist": {"51": "Duran", "53": "Air"}},
    ),
    # Last.fm 360K: four columns without a header; artists have an id and a name, and plays come last.
    "lastfm_360k": of_files(
        {
            "usersha1-artmbid-artname-plays.tsv": "u1\tm1\tbetty blowtorch\t2137\nu1\tm2\tdie arzte\t1099\nu2\tm1\tbetty blowtorch\t897\nu3\tm3\tmelvins\t717\n"
        },
        refused="usersha1-artmbid",
    ),
    # Amazon's ratings only: user, item, rating, time, with commas and no header.
    "amazon_ratings": of_files(
        {
            "ratings_Books.csv": "A1YJ,B00001,5.0,1302739200\nA60X,B00001,2.0,1303862400\nA1YJ,B00002,4.0,1309651200\nA6MI,B00003,1.0,1313452800\n"
        },
        refused="ratings_Books.csv",
    ),
    # Book-Crossing: semicolons, everything quoted, User-ID and ISBN.
    "bookcrossing": of_files(
        {
            "BX-Book-Ratings.csv": '"User-ID";"ISBN";"Book-Rating"\n'
            + "".join(
                f'"{user}";"{isbn}";"{rating}"\n'
                for user, isbn, rating in (("276", "034545104X", 0), ("276", "0155061224", 5), ("277", "034545104X", 3))
            )
        },
        nodes={"User": 2, "ISBN": 2},
        edges={"User -> ISBN": "276>034545104X 276>0155061224 277>034545104X"},
        notes=["Book-Rating"],
    ),
    # Check-ins: user, time, latitude, longitude, place, with tabs and no header.
    "gowalla_checkins": of_files(
        {
            "checkins.txt": (
                "0\t2010-10-19T23:55:27Z\t30.23\t-97.79\t22847\n0\t2010-10-18T22:17:43Z\t30.26\t-97.76\t420315\n"
                "1\t2010-10-17T23:42:03Z\t30.25\t-97.76\t22847\n"
            )
        },
        refused="checkins.txt",
    ),
    # Signed trust: source, target, rating from -10 to 10, time, without a header.
    "bitcoin_otc": of_files(
        {
            "soc-sign-bitcoinotc.csv": "6,2,4,1289241911.72\n6,5,-10,1289241941.53\n1,15,1,1289243140.39\n4,3,7,1289245277.36\n13,16,8,1289254254.44\n"
        },
        refused="soc-sign-bitcoinotc.csv",
    ),
    # ---- Papers, films, shops: folders of tables -------------------------------------------------
    # One file per relation and one per node type.
    "movie_actor_folder": of_tables(
        table(
            "movies.csv", {"movie_id": "id:movie", "title": "name", "year": ""}, "1,Up,2009\n2,Heat,1995\n3,Alien,1979"
        ),
        table("actors.csv", {"actor_id": "id:actor", "name": "name"}, "7,Ann Ash\n8,Bo Birch\n9,Cy Cedar"),
        table("movie_actor.csv", {"movie_id": "source:movie", "actor_id": "target:actor"}, "1,7\n1,8\n2,8\n3,9\n3,7"),
        nodes={"movie": 3, "actor": 3},
        edges={"movie -movie_actor-> actor": "1>7 1>8 2>8 3>9 3>7"},
        names={"movie": {"1": "Up"}, "actor": {"8": "Bo Birch"}},
    ),
    # A node table with the id of another node: papers.csv with venue_id.
    "papers_with_venue_key": of_tables(
        table(
            "papers.csv",
            {"paper_id": "id:paper", "title": "name", "venue_id": "key:venue", "year": ""},
            "p1,Paths,v1,2011\np2,Sums,v2,2012\np3,Rows,v1,2012\np4,Keys,,2013",
        ),
        table("venues.csv", {"venue_id": "id:venue", "name": "name"}, "v1,VLDB\nv2,KDD"),
        table(
            "author_paper.csv", {"author_id": "source:author", "paper_id": "target:paper"}, "a1,p1\na1,p2\na2,p3\na3,p4"
        ),
        nodes={"author": 3, "paper": 4, "venue": 2},
        edges={"author -author_paper-> paper": "a1>p1 a1>p2 a2>p3 a3>p4", "paper -> venue": "p1>v1 p2>v2 p3>v1"},
        names={"paper": {"p2": "Sums"}, "venue": {"v1": "VLDB"}},
    ),
    # Exported tables of a shop: orders belong to customers, items join orders and products.
    "shop": of_tables(
        table("customers.csv", {"customer_id": "id:customer", "name": "name"}, "1,Ann\n2,Bob\n3,Cem"),
        table(
            "products.csv", {"product_id": "id:product", "name": "name", "price": ""}, "10,tea,2.5\n11,cup,8\n12,jar,4"
        ),
        table(
            "orders.csv",
            {"order_id": "id:order", "customer_id": "key:customer", "ordered_at": ""},
            "100,1,2024-01-02\n101,1,2024-02-03\n102,2,2024-02-04\n103,3,2024-02-05",
        ),
        table(
            "order_items.csv",
            {"order_id": "source:order", "product_id": "target:product", "quantity": ""},
            "100,10,1\n100,11,2\n101,10,1\n102,12,5\n103,11,1",
        ),
        nodes={"customer": 3, "product": 3, "order": 4},
        edges={
            "order -> customer": "100>1 101>1 102>2 103>3",
            "order -> product": "100>10 100>11 101>10 102>12 103>11",
        },
        names={"customer": {"3": "Cem"}, "product": {"10": "tea"}},
        notes=["quantity"],
    ),
    # IMDb's non-commercial tables: tconst and nconst, several genres in one cell, \N for nothing.
    "imdb_tsv": of_files(
        {
            "title.basics.tsv": (
                "tconst\ttitleType\tprimaryTitle\tstartYear\tendYear\tgenres\n"
                "tt01\tmovie\tHeat\t1995\t\\N\tAction,Crime\ntt02\tmovie\tUp\t2009\t\\N\tAnimation\n"
            ),
            "title.principals.tsv": (
                "tconst\tordering\tnconst\tcategory\tjob\tcharacters\n"
                'tt01\t1\tnm01\tactor\t\\N\t["Neil"]\ntt01\t2\tnm02\tdirector\t\\N\t\\N\ntt02\t1\tnm02\tactor\t\\N\t\\N\n'
            ),
            "name.basics.tsv": (
                "nconst\tprimaryName\tbirthYear\tdeathYear\tprimaryProfession\tknownForTitles\n"
                "nm01\tAnn Ash\t1943\t\\N\tactor,producer\ttt01\nnm02\tBo Birch\t1943\t\\N\tdirector\ttt01,tt02\n"
            ),
        },
        refused="title.basics.tsv|title.principals.tsv|name.basics.tsv",
    ),
    # Relations named by their files: author_writes_paper.csv with source and target.
    "author_writes_paper": of_tables(
        table(
            "author_writes_paper.csv",
            {"source": "source:author", "target": "target:paper"},
            "a1,p1\na1,p2\na2,p2\na3,p3",
        ),
        table("paper_cites_paper.csv", {"citing": "source:paper", "cited": "target:paper"}, "p1,p2\np2,p3\np1,p3"),
        nodes={"author": 3, "paper": 3},
        edges={"author -writes-> paper": "a1>p1 a1>p2 a2>p2 a3>p3", "paper -cites-> paper": "p1>p2 p2>p3 p1>p3"},
    ),
    # Cora: .content with words as columns and .cites with cited before citing; neither suffix is a table's.
    "cora": of_files(
        {"cora.content": "31336\t0\t1\t0\tNeural\n1061127\t1\t0\t0\tRules\n", "cora.cites": "31336\t1061127\n"},
        refused="no tables",
    ),
    # The four-area DBLP of many papers: author.txt, paper.txt, conf.txt and relations without headers.
    "dblp_four_area": of_tables(
        table("author.txt", {"1": "id:author", "2": "name"}, "1,Ann Ash\n2,Bo Birch\n3,Cy Cedar", "\t", header=False),
        table("paper.txt", {"1": "id:paper", "2": "name"}, "10,On Paths\n11,On Sums\n12,On Rows", "\t", header=False),
        table("conf.txt", {"1": "id:conf", "2": "name"}, "90,VLDB\n91,KDD", "\t", header=False),
        table(
            "paper_author.txt",
            {"1": "source:paper", "2": "target:author"},
            "10,1\n10,2\n11,2\n12,3",
            "\t",
            header=False,
        ),
        table("paper_conf.txt", {"1": "source:paper", "2": "target:conf"}, "10,90\n11,91\n12,90", "\t", header=False),
        nodes={"author": 3, "paper": 3, "conf": 2},
        edges={"paper -paper_author-> author": "10>1 10>2 11>2 12>3", "paper -paper_conf-> conf": "10>90 11>91 12>90"},
        names={"author": {"2": "Bo Birch"}, "conf": {"90": "VLDB"}},
    ),
    # A wide table: each row names a film and what belongs to it.
    "wide_table": of_tables(
        table(
            "films.csv",
            {"movie": "first:movie", "actor": "other:actor", "director": "other:director", "genre": "other:genre"},
            "Heat,Ann Ash,Mo Mann,Crime\nUp,Bo Birch,Pi Pine,Family\nAlien,Cy Cedar,Ri Rowan,Space\nThief,Ann Ash,Mo Mann,Crime",
        ),
        nodes={"movie": 4, "actor": 3, "director": 3, "genre": 3},
        edges={
            "movie -> actor": [("Heat", "Ann Ash"), ("Up", "Bo Birch"), ("Alien", "Cy Cedar"), ("Thief", "Ann Ash")],
            "movie -> director": [("Heat", "Mo Mann"), ("Up", "Pi Pine"), ("Alien", "Ri Rowan"), ("Thief", "Mo Mann")],
            "movie -> genre": [("Heat", "Crime"), ("Up", "Family"), ("Alien", "Space"), ("Thief", "Crime")],
        },
    ),
    # A wide table of three columns, which are no triples.
    "wide_table_of_three": of_tables(
        table(
            "films.csv",
            {"movie": "first:movie", "actor": "other:actor", "director": "other:director"},
            "Heat,Ann Ash,Mo Mann\nThief,Bo Birch,Mo Mann\nAlien,Cy Cedar,Ri Rowan\nUp,Bo Birch,Pi Pine\nHeat,Bo Birch,Mo Mann",
        ),
        nodes={"movie": 4, "actor": 3, "director": 3},
        edges={
            "movie -> actor": [
                ("Heat", "Ann Ash"),
                ("Heat", "Bo Birch"),
                ("Thief", "Bo Birch"),
                ("Alien", "Cy Cedar"),
                ("Up", "Bo Birch"),
            ],
            "movie -> director": [("Heat", "Mo Mann"), ("Thief", "Mo Mann"), ("Alien", "Ri Rowan"), ("Up", "Pi Pine")],
        },
        notes=["once"],
    ),
    # A node table whose cells are JSON lists.
    "list_cells_as_json": of_tables(
        table(
            "books.csv",
            {"book_id": "id:book", "title": "name", "authors": "list:author"},
            'b1,Paths,"[""Ann"", ""Bob""]"\nb2,Sums,"[""Bob""]"\nb3,Rows,"[""Cem"", ""Ann""]"',
        ),
        nodes={"book": 3, "author": 3},
        edges={"book -> author": "b1>Ann b1>Bob b2>Bob b3>Cem b3>Ann"},
        names={"book": {"b2": "Sums"}},
    ),
    # TMDB on Kaggle: lists of objects as JSON in a cell; read as attributes, and said, or refused.
    "tmdb_json_cells": of_files(
        {
            "tmdb_5000_movies.csv": (
                'id,title,genres\n19995,Avatar,"[{""id"": 28, ""name"": ""Action""}, {""id"": 12, ""name"": ""Adventure""}]"\n'
                '285,Pirates,"[{""id"": 12, ""name"": ""Adventure""}]"\n'
            )
        },
        refused="tmdb_5000_movies.csv",
    ),
    # ---- Edge lists ------------------------------------------------------------------------------
    # SNAP's edge lists: comments above, the header in one of them, tabs.
    "snap_edge_list": of_files(
        {
            "soc-net.txt": (
                "# Directed graph (each unordered pair of nodes is saved once)\n# Nodes: 4 Edges: 4\n# FromNodeId\tToNodeId\n"
                "0\t1\n0\t2\n1\t2\n3\t0\n"
            )
        },
        nodes={"node": 4},
        edges={"node -> node": "0>1 0>2 1>2 3>0"},
        notes=["comment"],
    ),
    # An edge list with a usual header and weights.
    "edge_list_source_target": of_tables(
        table(
            "network.csv", {"source": "source", "target": "target", "weight": "weight"}, "a,b,2\nb,c,0.5\nc,a,1\nd,a,3"
        ),
        nodes={"node": 4},
        edges={"node -> node": "a>b*2 b>c*0.5 c>a d>a*3"},
    ),
    # An edge list of two columns without a header.
    "edge_list_without_header": of_tables(
        table("network.txt", {"1": "source", "2": "target"}, "1,2\n2,3\n3,1\n4,1\n4,2", "\t", header=False),
        nodes={"node": 4},
        edges={"node -> node": "1>2 2>3 3>1 4>1 4>2"},
    ),
    # A relation named by its file, without a header.
    "user_item_without_header": of_tables(
        table(
            "user_item.txt",
            {"1": "source:user", "2": "target:item"},
            "1,10\n1,11\n2,10\n3,12\n3,10",
            "\t",
            header=False,
        ),
        nodes={"user": 3, "item": 3},
        edges={"user -user_item-> item": "1>10 1>11 2>10 3>12 3>10"},
    ),
    # STRING's protein links: spaces between the cells, a score.
    "string_links": of_files(
        {
            "9606.protein.links.v12.0.txt": "protein1 protein2 combined_score\n9606.E1 9606.E2 173\n9606.E1 9606.E3 154\n9606.E2 9606.E3 151\n"
        },
        nodes={"protein": 3},
        edges={"protein -> protein": "9606.E1>9606.E2 9606.E1>9606.E3 9606.E2>9606.E3"},
        attributes={"protein -> protein": {"combined_score": [173, 154, 151]}},
        notes=["combined_score"],
    ),
    # Who follows whom: roles as headers.
    "follower_list": of_tables(
        table("follows.csv", {"follower_id": "source", "followee_id": "target"}, "u1,u2\nu2,u3\nu3,u1\nu4,u1"),
        refused="follows.csv",
    ),
    # A relation with another character between the cells, or gzipped.
    **{
        label: of_tables(
            table(
                name,
                {"author_id": "source:author", "paper_id": "target:paper", "weight": "weight"},
                "a1,p1,1\na1,p2,2\na2,p2,1\na3,p1,0.5",
                delimiter,
            ),
            nodes={"author": 3, "paper": 2},
            edges={"author -author_paper-> paper": "a1>p1 a1>p2*2 a2>p2 a3>p1*0.5"},
        )
        for label, name, delimiter in (
            ("comma", "author_paper.csv", ","),
            ("semicolon", "author_paper.csv", ";"),
            ("tab", "author_paper.tsv", "\t"),
            ("pipe", "author_paper.txt", "|"),
            ("gzipped", "author_paper.csv.gz", ","),
        )
    },
    # UTF-8 with a byte-order mark, as Excel writes it.
    "byte_order_mark": of_files({"movie_actor.csv": _CAST.encode("utf-8-sig")}, **_CAST_GRAPH),
    # UTF-16, as Excel writes "Unicode text".
    "utf_16": of_files({"movie_actor.csv": _CAST.encode("utf-16")}, refused="is UTF-16 text; convert it"),
    # Latin-1 text.
    "latin_1": of_files({"movie_actor.csv": _CAST.encode("latin-1")}, refused="is not UTF-8 text"),
    # Lines that end with CR and LF.
    "windows_lines": of_files({"movie_actor.csv": _CAST.replace("\n", "\r\n")}, **_CAST_GRAPH),
    # Lines that end with CR only.
    "old_mac_lines": of_files({"movie_actor.csv": _CAST.replace("\n", "\r")}, **_CAST_GRAPH),
    # Cells with newlines, quotes and delimiters inside quotes.
    "quoted_newlines": of_files(
        {
            "movie_actor.csv": "movie_id,actor_id\n1,7\n1,8\n2,8\n",
            "movies.csv": 'movie_id,title\n1,"Up,\nup and ""away"""\n2,Heat\n',
        },
        nodes={"movie": 2, "actor": 2},
        edges={"movie -movie_actor-> actor": "1>7 1>8 2>8"},
        names={"movie": {"1": 'Up,\nup and "away"', "2": "Heat"}},
    ),
    # A first column without a header that counts the rows, as pandas writes it.
    "pandas_index": of_files({"movie_actor.csv": ",movie_id,actor_id\n0,1,ä1\n1,1,b2\n2,2,b2\n"}, **_CAST_GRAPH),
    # ---- Property graphs -------------------------------------------------------------------------
    # Files of neo4j-admin import: nodes.csv and relationships.csv.
    "neo4j_admin": of_tables(
        table(
            "nodes.csv",
            {"id:ID": "id", "name": "name", ":LABEL": "type"},
            "1,Heat,Movie\n2,Up,Movie\n7,Ann Ash,Person\n8,Bo Birch,Person",
        ),
        table(
            "relationships.csv",
            {":START_ID": "source", "role": "", ":END_ID": "target", ":TYPE": "relation"},
            "7,Neil,1,ACTED_IN\n8,,1,DIRECTED\n8,Carl,2,ACTED_IN",
        ),
        nodes={"Movie": 2, "Person": 2},
        edges={"Person -ACTED_IN-> Movie": "7>1 8>2", "Person -DIRECTED-> Movie": "8>1"},
        names={"Movie": {"1": "Heat"}, "Person": {"8": "Bo Birch"}},
    ),
    # Files of neo4j-admin import, one per label and one per relationship.
    "neo4j_admin_files": of_tables(
        table(
            "movies.csv",
            {"movieId:ID": "id:Movie", "title": "name", "year:int": "", ":LABEL": ""},
            "tt1,Heat,1995,Movie\ntt2,Up,2009,Movie",
        ),
        table(
            "actors.csv",
            {"personId:ID": "id:Actor", "name": "name", ":LABEL": ""},
            "n1,Ann Ash,Actor\nn2,Bo Birch,Actor",
        ),
        table(
            "roles.csv",
            {":START_ID": "source:Actor", "role": "", ":END_ID": "target:Movie", ":TYPE": "relation"},
            "n1,Neil,tt1,ACTED_IN\nn2,Vin,tt1,ACTED_IN\nn2,Carl,tt2,ACTED_IN",
        ),
        nodes={"Movie": 2, "Actor": 2},
        edges={"Actor -ACTED_IN-> Movie": "n1>tt1 n2>tt1 n2>tt2"},
        names={"Movie": {"tt1": "Heat"}, "Actor": {"n2": "Bo Birch"}},
    ),
    # APOC's export of a whole database: nodes and relationships in one CSV, each with a property `since`.
    "neo4j_apoc_csv": of_files(
        {
            "export.csv": """"_id","_labels","name","since","title","_start","_end","_type","roles","since"
"0",":Person:Actor","Ann","1970","",,,,,
"1",":Movie","","","Heat",,,,,
"2",":Movie","","","Up",,,,,
,,,,,"0","1","ACTED_IN","[""Neil"",""Vin""]","1995"
,,,,,"0","2","ACTED_IN","","2009"
,,,,,"2","1","SEQUEL_OF","",""
"""
        },
        nodes={"Person": 1, "Movie": 2},
        edges={"Person -ACTED_IN-> Movie": "0>1 0>2", "Movie -SEQUEL_OF-> Movie": "2>1"},
        names={"Person": {"0": "Ann"}, "Movie": {"1": "Heat", "2": "Up"}},
        attributes={"Person -ACTED_IN-> Movie": {"roles": "text", "since": [1995, 2009]}},
        notes=["of several labels of a node, the first"],
    ),
    # APOC's export with bulkImport: true: one CSV with the header of neo4j-admin for each label and type.
    "neo4j_apoc_bulk": of_files(
        {
            "g.nodes.Person.csv": ":ID,born:long,name,:LABEL\n0,1964,Ann,Person\n",
            "g.nodes.Movie.csv": ":ID,title,:LABEL\n1,Heat,Movie\n2,Up,Movie\n",
            "g.relationships.ACTED_IN.csv": ":START_ID,:END_ID,:TYPE,roles:string[]\n0,1,ACTED_IN,Neil;Vin\n0,2,ACTED_IN,\n",
        },
        nodes={"Person": 1, "Movie": 2},
        edges={"Person -ACTED_IN-> Movie": "0>1 0>2"},
        names={"Person": {"0": "Ann"}, "Movie": {"2": "Up"}},
    ),
    # Gephi's nodes.csv and edges.csv: `Type` says Undirected, `Label` is the name.
    "gephi_tables": of_tables(
        table("nodes.csv", {"Id": "id", "Label": "name", "Modularity Class": ""}, "1,Ann,0\n2,Bob,0\n3,Cem,1\n4,Dov,1"),
        table(
            "edges.csv",
            {"Source": "source", "Target": "target", "Type": "", "Id": "", "Weight": "weight"},
            "1,2,Undirected,0,1.0\n2,3,Undirected,1,2.0\n3,4,Undirected,2,1.0",
        ),
        nodes={"node": 4},
        edges={"node -- node": "1>2 2>3*2 3>4"},
        names={"node": {"3": "Cem"}},
    ),
    # DGL's CSV datasets: nodes.csv with node_id, edges.csv with src_id and dst_id.
    "dgl_csv": of_tables(
        table("nodes.csv", {"node_id": "id", "label": ""}, "0,1\n1,1\n2,0\n3,0"),
        table("edges.csv", {"src_id": "source", "dst_id": "target", "weight": "weight"}, "0,1,0.5\n1,2,1\n3,0,2"),
        nodes={"node": 4},
        edges={"node -> node": "0>1*0.5 1>2 3>0*2"},
        names={"node": None},
    ),
    # Cytoscape's .sif: source, interaction and any number of targets.
    "cytoscape_sif": of_files({"network.sif": "A\tpp\tB\nA\tpp\tC\tD\nB\tpd\tC\n"}, refused="network.sif"),
    # ---- Tables that are no graph ----------------------------------------------------------------
    # A labelled square matrix as CSV.
    "adjacency_matrix": of_files({"adjacency.csv": ",a,b,c\na,0,1,0\nb,1,0,1\nc,0,1,0\n"}, refused="adjacency.csv"),
    # Users as rows, items as columns, ratings as cells.
    "pivot_table": of_files({"ratings.csv": "user,tea,cup,jar\nann,5,,1\nbob,,2,4\ncem,3,3,\n"}, refused="ratings.csv"),
    # A table of numbers.
    "measurements": of_files(
        {
            "iris.csv": "sepal_length,sepal_width,petal_length,species\n5.1,3.5,1.4,setosa\n4.9,3.0,1.4,setosa\n6.3,3.3,6.0,virginica\n"
        },
        refused="iris.csv",
    ),
    # Gene sets as .gmt: a name, a link and any number of genes.
    "gene_sets": of_files({"sets.gmt": "HEAL\thttp://x\tA1\tB2\nGROW\thttp://y\tA1\tC3\tD4\n"}, refused="sets.gmt"),
    # ---- Benchmarks ------------------------------------------------------------------------------
    # HGB: node.dat, link.dat, info.dat, label.dat.
    "hgb": of_files(
        {
            "node.dat": "0\tAnn\t0\t0.5,1\n1\tBob\t0\t1,0\n2\tPaths\t1\n3\tSums\t1\n",
            "link.dat": "0\t2\t0\t1.0\n1\t2\t0\t1.0\n1\t3\t0\t2.0\n2\t0\t1\t1.0\n2\t1\t1\t1.0\n3\t1\t1\t2.0\n",
            "label.dat": "0\tAnn\t0\t1\n",
            "info.dat": (
                '{"node.dat": {"node type": {"0": "author", "1": "paper"}}, "link.dat": {"link type": '
                '{"0": {"start": 0, "end": 1, "meaning": "author-writes-paper"}, "1": {"start": 1, "end": 0, "meaning": "by"}}}}'
            ),
        },
        nodes={"author": 2, "paper": 2},
        edges={"author -> paper": "0>2 1>2 1>3*2"},
        names={"author": {"1": "Bob"}},
        notes=["backwards"],
    ),
    # ogbn-mag: edges in raw/relations/…/edge.csv.gz, mappings of numbers to ids.
    "ogb_mag": of_files(
        {
            "mapping/author_entidx2name.csv.gz": "ent idx,ent name\n0,1001\n1,1002\n",
            "mapping/paper_entidx2name.csv.gz": "ent idx,ent name\n0,2001\n1,2002\n",
            "raw/triplet-type-list.csv.gz": "author,writes,paper\n",
            "raw/num-node-dict.csv.gz": "author,paper\n2,2\n",
            "raw/relations/author___writes___paper/edge.csv.gz": "0,0\n0,1\n1,1\n",
        },
        refused="has no tables",
    ),
    # The mapping folder of ogbl-biokg: numbers to names, no edges.
    "ogb_mapping": of_files(
        {"relidx2relname.csv.gz": "rel idx,rel name\n0,disease-protein\n1,drug-disease\n"}
        | {
            f"{kind}_entidx2name.csv.gz": f"ent idx,ent name\n0,{kind[0]}1\n1,{kind[0]}2\n"
            for kind in ("disease", "drug", "protein")
        },
        refused="relation|edges",
    ),
    # TUDataset: DS_A.txt with pairs of numbers, DS_graph_indicator.txt with one number per line.
    "tu_dataset": of_files(
        {"MUTAG_A.txt": "2, 1\n1, 2\n3, 2\n2, 3\n", "MUTAG_graph_indicator.txt": "1\n1\n1\n"}, refused="MUTAG"
    ),
    # ---- Everyday tables -------------------------------------------------------------------------
    # A node table with keys to another type and to its own.
    "employees": of_tables(
        table(
            "employees.csv",
            {
                "employee_id": "id:employee",
                "name": "name",
                "manager_id": "key:employee",
                "department_id": "key:department",
            },
            "1,Ann,,10\n2,Bob,1,10\n3,Cem,1,20\n4,Dov,2,20",
        ),
        table("departments.csv", {"department_id": "id:department", "name": "name"}, "10,Search\n20,Graphs"),
        nodes={"employee": 4, "department": 2},
        edges={"employee -> employee": "2>1 3>1 4>2", "employee -> department": "1>10 2>10 3>20 4>20"},
        names={"employee": {"4": "Dov"}, "department": {"10": "Search"}},
    ),
    # Empty keys that R and SQL write as NA and NULL: they are no node.
    "foreign_keys_with_na": of_files(
        {
            "papers.csv": "paper_id,title,venue_id\np1,Paths,v1\np2,Sums,NA\np3,Rows,NA\np4,Keys,v2\n",
            "venues.csv": "venue_id,name\nv1,VLDB\nv2,KDD\n",
            "author_paper.csv": "author_id,paper_id\na1,p1\na1,p2\na2,p3\na3,p4\n",
        },
        refused="NA",
    ),
    # Check-ins with a header: the relation of user and venue has the category of the venue in further columns.
    "foursquare_checkins": of_files(
        {
            "checkins.csv": (
                "userId,venueId,venueCategoryId,venueCategory,latitude,longitude,utcTimestamp\n"
                "470,v1,c1,Bridge,40.7,-74.0,Tue Apr 03\n979,v2,c2,Cafe,40.6,-74.1,Tue Apr 03\n470,v2,c2,Cafe,40.6,-74.1,Wed Apr 04\n"
            )
        },
        nodes={"user": 2, "venue": 2},
        edges={"user -> venue": "470>v1 979>v2 470>v2"},
        attributes={
            "user -> venue": {
                "venueCategoryId": ["c1", "c2", "c2"],
                "venueCategory": "text",
                "latitude": [40.7, 40.6, 40.6],
                "longitude": "number",
                "utcTimestamp": "text",
            }
        },
        notes=["venueCategoryId"],
    ),
    # Goodreads' interactions: user, book, flags and a rating.
    "goodreads_interactions": of_tables(
        table(
            "goodreads_interactions.csv",
            {"user_id": "source:user", "book_id": "target:book", "is_read": "", "rating": "", "is_reviewed": ""},
            "0,948,1,5,0\n0,947,1,5,1\n1,946,0,0,0\n2,948,1,4,0",
        ),
        nodes={"user": 3, "book": 3},
        edges={"user -> book": "0>948 0>947 1>946 2>948"},
        attributes={"user -> book": {"is_read": "integer", "rating": [5, 5, 0, 4], "is_reviewed": "integer"}},
        notes=["would make rating the weight"],
    ),
    # Two relations between the same types.
    "two_relations_between_types": of_tables(
        table("user_likes_item.csv", {"user_id": "source:user", "item_id": "target:item"}, "1,a\n1,b\n2,b\n3,c"),
        table("user_buys_item.csv", {"user_id": "source:user", "item_id": "target:item"}, "1,a\n2,c\n3,a"),
        nodes={"user": 3, "item": 3},
        edges={"user -likes-> item": "1>a 1>b 2>b 3>c", "user -buys-> item": "1>a 2>c 3>a"},
    ),
    # A folder with a README, a licence, a hidden file and a picture beside its tables.
    "other_files_beside": of_files(
        {
            "README.txt": "These are\ttables.\n",
            "LICENSE": "MIT\n",
            ".DS_Store": b"\0\1",
            "figure.png": b"\x89PNG",
            "movie_actor.CSV": _CAST,
        },
        **_CAST_GRAPH,
    ),
    # A header with a space after each comma.
    "spaces_after_commas": of_files(
        {"user_item.csv": "user_id, item_id, weight\n1, a, 2\n1, b, 1\n2, a, 0.5\n"},
        nodes={"user": 2, "item": 2},
        edges={"user -user_item-> item": "1>a*2 1>b 2>a*0.5"},
    ),
    # Ids with leading zeros stay texts.
    "leading_zeros": of_files(
        {"shop_item.csv": "shop_id,item_id\n007,1\n7,1\n007,2\n"},
        nodes={"shop": 2, "item": 2},
        edges={"shop -shop_item-> item": "007>1 7>1 007>2"},
    ),
    # A join table of Django or Rails: with an id of its own, a membership is a node with two keys.
    "join_table_with_own_id": of_tables(
        table("users.csv", {"id": "id:user", "name": "name"}, "1,Ann\n2,Bob\n3,Cem"),
        table("groups.csv", {"id": "id:group", "name": "name"}, "7,Search\n8,Graphs"),
        table(
            "memberships.csv",
            {"id": "id:membership", "user_id": "key:user", "group_id": "key:group"},
            "1,1,7\n2,1,8\n3,2,7\n4,3,8",
        ),
        nodes={"user": 3, "group": 2, "membership": 4},
        edges={"membership -> user": "1>1 2>1 3>2 4>3", "membership -> group": "1>7 2>8 3>7 4>8"},
        names={"user": {"2": "Bob"}, "group": {"8": "Graphs"}},
    ),
    # CTD: comments above, the header in one of them, ids beside names.
    "ctd": of_files(
        {
            "CTD_chemicals_diseases.csv": (
                "# This is made up.\n# Fields:\n# ChemicalName,ChemicalID,CasRN,DiseaseName,DiseaseID,DirectEvidence\n#\n"
                "Aspirol,C01,50-1,hives,MESH:D1,therapeutic\nBexin,C02,,hives,MESH:D1,\nBexin,C02,,ague,MESH:D2,marker\n"
            )
        },
        refused="CTD_chemicals_diseases.csv",
    ),
    # Steam's log: user, game, what was done, hours, without a header.
    "steam": of_files(
        {
            "steam-200k.csv": "151603712,Skyrim,purchase,1.0,0\n151603712,Skyrim,play,273.0,0\n59945701,Dota 2,purchase,1.0,0\n59945701,Dota 2,play,2.3,0\n"
        },
        refused="steam-200k.csv",
    ),
    # A log whose first column is the date.
    "date_first": of_tables(
        table(
            "purchases.csv",
            {"date": "", "customer_id": "source:customer", "product_id": "target:product", "amount": ""},
            "2024-01-01,c1,p1,2\n2024-01-01,c1,p2,1\n2024-01-02,c2,p1,1\n2024-01-03,c3,p3,4",
        ),
        nodes={"customer": 3, "product": 3},
        edges={"customer -> product": "c1>p1 c1>p2 c2>p1 c3>p3"},
        attributes={"customer -> product": {"date": "date", "amount": [2, 1, 1, 4]}},
        notes=["amount"],
    ),
    # A temporal edge list: source, target, seconds, no header.
    "edge_list_with_times": of_files(
        {"email-temporal.txt": "582 364 0\n168 472 2797\n168 912 3304\n2 790 4523\n582 472 6113\n"},
        refused="email-temporal.txt",
    ),
    # Triples where a relation has each edge in both directions.
    "undirected_both_ways": of_tables(
        table(
            "kg.csv",
            {"subject": "source", "predicate": "relation", "object": "target"},
            "Ann,married_to,Bob\nBob,married_to,Ann\nCem,married_to,Dea\nDea,married_to,Cem\nAnn,lives_in,Bonn\nCem,lives_in,Bonn",
        ),
        nodes={"entity": 5},
        edges={
            "entity -married_to-> entity": "Ann>Bob Bob>Ann Cem>Dea Dea>Cem",
            "entity -lives_in-> entity": "Ann>Bonn Cem>Bonn",
        },
    ),
    # A tree: child and parent.
    "parent_child": of_tables(
        table(
            "taxonomy.csv",
            {"child": "source", "parent": "target"},
            "cat,mammal\ndog,mammal\nmammal,animal\nowl,bird\nbird,animal",
        ),
        refused="taxonomy.csv",
    ),
    # MovieLens' links.csv: two other ids of the same movie are no nodes.
    "mapping_of_ids": of_files(
        {"links.csv": "movieId,imdbId,tmdbId\n1,0114709,862\n2,0113497,8844\n3,0113228,15602\n"}, refused="links.csv"
    ),
    # Two roles of one type as columns.
    "citations": of_tables(
        table("citations.csv", {"citing_paper_id": "source", "cited_paper_id": "target"}, "p1,p2\np2,p3\np1,p3\np4,p1"),
        nodes={"paper": 4},
        edges={"paper -> paper": "p1>p2 p2>p3 p1>p3 p4>p1"},
    ),
    # A key that SQL wrote as NULL joins nothing.
    "null_keys": of_files(
        {"papers.csv": "paper_id,title,venue_id\np1,Paths,v1\np2,Sums,NULL\np3,Rows,NULL\np4,Keys,v1\np5,Cells,v2\n"},
        nodes={"paper": 5, "venue": 2},
        edges={"paper -> venue": "p1>v1 p4>v1 p5>v2"},
        notes=["NULL"],
    ),
    # Several keys in one table, of which the second counts the items of an order.
    "olist_order_items": of_files(
        {
            "olist_order_items_dataset.csv": "order_id,order_item_id,product_id,seller_id,price\no1,1,p1,s1,58.9\no1,2,p2,s1,10\no2,1,p1,s2,239\no3,1,p3,s1,9\n"
        },
        refused="olist_order_items_dataset.csv",
    ),
    # A timetable: routes, trips that belong to routes and services, and times that join trips and stops.
    "gtfs": of_tables(
        table("stops.txt", {"stop_id": "id:stop", "stop_name": "name", "stop_lat": ""}, "S1,Bonn,50.7\nS2,Koeln,50.9"),
        table("routes.txt", {"route_id": "id:route", "agency_id": "key:agency", "route_type": ""}, "R1,A,2\nR2,A,2"),
        table("agency.txt", {"agency_id": "id:agency", "agency_name": "name"}, "A,Bahn"),
        table(
            "trips.txt",
            {"route_id": "key:route", "service_id": "key:service", "trip_id": "id:trip"},
            "R1,WD,T1\nR1,WE,T2\nR2,WD,T3",
        ),
        table(
            "stop_times.txt",
            {
                "trip_id": "source:trip",
                "arrival_time": "",
                "departure_time": "",
                "stop_id": "target:stop",
                "stop_sequence": "",
            },
            "T1,08:00:00,08:01:00,S1,1\nT1,08:30:00,08:31:00,S2,2\nT2,09:00:00,09:01:00,S1,1\nT3,10:00:00,10:01:00,S2,1",
        ),
        nodes={"stop": 2, "route": 2, "agency": 1, "trip": 3, "service": 2},
        edges={
            "route -> agency": "R1>A R2>A",
            "trip -> route": "T1>R1 T2>R1 T3>R2",
            "trip -> service": "T1>WD T2>WE T3>WD",
            "trip -> stop": "T1>S1 T1>S2 T2>S1 T3>S2",
        },
        names={"stop": {"S1": "Bonn"}},
    ),
    # Orders of users, products with aisles and departments, and what was ordered.
    "instacart": of_tables(
        table(
            "orders.csv",
            {"order_id": "id:order", "user_id": "key:user", "eval_set": ""},
            "1,7,prior\n2,7,prior\n3,8,train",
        ),
        table(
            "products.csv",
            {"product_id": "id:product", "product_name": "name", "aisle_id": "key:aisle"},
            "10,Tea,94\n11,Salt,104\n12,Mint,94",
        ),
        table("aisles.csv", {"aisle_id": "id:aisle", "aisle": ""}, "94,tea\n104,spices"),
        table(
            "order_products__prior.csv",
            {"order_id": "source:order", "product_id": "target:product", "add_to_cart_order": ""},
            "1,10,1\n1,11,2\n2,10,1\n3,12,1",
        ),
        nodes={"order": 3, "user": 2, "product": 3, "aisle": 2},
        edges={
            "order -> user": "1>7 2>7 3>8",
            "product -> aisle": "10>94 11>104 12>94",
            "order -> product": "1>10 1>11 2>10 3>12",
        },
        names={"product": {"10": "Tea"}},
    ),
    # Two ids that are not side by side, each with its name and further columns.
    "disgenet": of_tables(
        table(
            "curated_gene_disease_associations.tsv",
            {
                "geneId": "source:gene",
                "geneSymbol": "",
                "DSI": "",
                "diseaseId": "target:disease",
                "diseaseName": "",
                "score": "",
            },
            "1,A1BG,0.7,C01,hives,0.3\n2,A2M,0.5,C01,hives,0.5\n2,A2M,0.5,C02,ague,0.31\n3,NAT1,0.6,C03,cough,0.2",
            "\t",
        ),
        nodes={"gene": 3, "disease": 3},
        edges={"gene -> disease": "1>C01 2>C01 2>C02 3>C03"},
        attributes={
            "gene -> disease": {
                "geneSymbol": "text",
                "DSI": "number",
                "diseaseName": "text",
                "score": [0.3, 0.5, 0.31, 0.2],
            }
        },
        notes=["score"],
    ),
}
