"""The numbers printed in the tables of Xiao, Zhao, Zheng, Song, Neural PathSim, CIKM 2021."""

_ACM, _IMDB = ("APA", "APCPA", "PCP", "PAFAP"), ("MAM", "MAMAM", "DMD", "DMAMD")


def _table(columns: tuple[str, ...], text: str) -> dict[tuple[str, str], float]:
    """Read a table whose rows are the name of a model and one number per column."""
    rows = (line.split() for line in text.strip().splitlines())
    return {(row[0], metapath): float(cell) for row in rows for metapath, cell in zip(columns, row[1:], strict=True)}


RMSE = _table(
    (*_ACM, *_IMDB),
    """
    mlp     0.2835 0.0439 0.0314 0.2408 0.3790 0.3354 0.1708 0.2949
    gat     0.2519 0.0381 0.0963 0.2378 0.4023 0.3567 0.1121 0.2991
    gcn     0.2400 0.0374 0.0818 0.2036 0.3887 0.3320 0.1266 0.3072
    han     0.3301 0.0321 0.0012 0.3091 0.4444 0.4167 0.1236 0.2881
    rgcn    0.2289 0.0319 0.0042 0.3267 0.3844 0.3676 0.1273 0.3065
    hgt     0.3428 0.0311 0.0003 0.3354 0.4561 0.3919 0.1247 0.3018
    gtn     0.2232 0.0329 0.0007 0.3219 0.3236 0.3456 0.1257 0.3321
    neupath 0.1902 0.0210 0.0005 0.1955 0.3001 0.3111 0.1101 0.2506
    """,
)
NDCG = _table(
    (*_ACM, *_IMDB),
    """
    mlp     0.5472 0.1665 0.1657 0.1969 0.5497 0.3462 0.1690 0.5471
    gat     0.4905 0.1700 0.1721 0.2117 0.4133 0.3132 0.1779 0.5335
    gcn     0.5150 0.1725 0.1716 0.2208 0.4546 0.3486 0.1725 0.5321
    rgcn    0.4717 0.1737 0.1699 0.2149 0.4265 0.3287 0.1722 0.5498
    han     0.5777 0.1605 0.1923 0.2232 0.5329 0.3932 0.1770 0.5674
    hgt     0.5632 0.1663 0.1816 0.2151 0.5467 0.3433 0.1791 0.5358
    gtn     0.5812 0.1722 0.2001 0.2341 0.5605 0.4032 0.1801 0.5534
    neupath 0.6115 0.2301 0.2441 0.2405 0.5832 0.4309 0.1821 0.5998
    """,
)
ABLATION_RMSE = _table(
    _ACM,
    """
    mean-pooling                0.2013 0.0274 0.0006 0.2104
    max-pooling                 0.1991 0.0300 0.0005 0.2023
    sum-pooling                 0.1956 0.0288 0.0005 0.2066
    without-node-types          0.2001 0.0212 0.0005 0.2027
    without-edge-types          0.2239 0.0475 0.0007 0.2299
    without-node-or-edge-types  0.2247 0.0490 0.0007 0.2302
    neupath                     0.1902 0.0210 0.0005 0.1955
    """,
)
ABLATION_NDCG = _table(
    _ACM,
    """
    mean-pooling                0.5901 0.2009 0.2089 0.2016
    max-pooling                 0.5888 0.2176 0.2227 0.2224
    sum-pooling                 0.5833 0.2143 0.2199 0.2126
    without-node-types          0.6002 0.2121 0.2339 0.2327
    without-edge-types          0.5306 0.1764 0.1887 0.2249
    without-node-or-edge-types  0.5106 0.1735 0.1701 0.2148
    neupath                     0.6115 0.2301 0.2441 0.2405
    """,
)
