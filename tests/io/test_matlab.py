from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
from scipy.sparse import csc_matrix

import neupath as npth
from neupath import NeuPathError
from neupath.io.formats import mat_content
from tests.tables import check_read, shape


def save(path: Path, **content: object) -> Path:
    scipy.io.savemat(path, content)
    return path


def test_acm_is_recognised_by_its_keys(tmp_path: Path) -> None:
    names = np.empty((2, 1), dtype=object)
    names[:, 0] = ["KDD", "VLDB"]
    path = save(
        tmp_path / "ACM.mat",
        PvsA=csc_matrix([[1, 1, 0], [0, 1, 1]]),
        PvsC=csc_matrix([[1, 0], [0, 1]]),
        AvsF=csc_matrix([[1], [1], [0]]),
        PvsT=csc_matrix([[3, 0], [0, 1]]),
        C=names,
    )
    hin = npth.load(path)
    assert shape(hin) == {"paper -PvsA-> author": 4, "paper -PvsC-> conference": 2, "author -AvsF-> affiliation": 2}
    assert str(hin.metapath("PAFAP")) == "paper-author-affiliation-author-paper"
    assert str(hin.metapath("APCPA")) == "author-paper-conference-paper-author"
    assert hin.nodes["conference"].names is not None
    assert hin.nodes["conference"].names.to_pylist() == ["KDD", "VLDB"]
    assert hin.notes == ("ACM.mat: PvsT was left out",)
    assert npth.PathSim("PAP").fit(hin).score(0, 1) == 2 * 1 / (2 + 2)


@pytest.mark.slow
def test_any_sparse_or_dense_relation_matrices(tmp_path: Path) -> None:
    path = save(
        tmp_path / "g.mat",
        user_item=np.array([[0.0, 2.5], [0, 0]]),
        item2tag=csc_matrix([[1], [0]]),
        train_idx=np.arange(5),
    )
    hin = npth.load(path)
    assert shape(hin) == {"user -user_item-> item": 1, "item -item2tag-> tag": 1}
    assert next(iter(hin.matrices.values())).data.tolist() == [2.5]
    assert hin.notes == ("g.mat: train_idx was left out",)
    (tmp_path / "one.toml").write_text('take = ["item2tag"]')
    assert list(shape(npth.load(path, config=tmp_path / "one.toml"))) == ["item -item2tag-> tag"]
    (tmp_path / "none.toml").write_text('take = ["tag2tag"]')
    with pytest.raises(NeuPathError, match=r"no relation matrix 'tag2tag' to take \(it has user_item, item2tag\)"):
        npth.load(path, config=tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"A": 1, "B": "x"}, "has no relation matrices: it needs keys such as PvsA .*, but has A, B"),
        ({"user_item": np.eye(2), "item_tag": np.eye(3)}, "item_tag has 3 nodes of type item, but user_item has 2"),
        ({"PvsA": np.eye(2), "PvsC": "hello", "AvsF": np.eye(2)}, "PvsC is not a 2-D numeric matrix"),
        ({"user_item": -np.eye(2)}, "edge number 1: weight -1.0 is not allowed"),
        (b"not a mat file", "g.mat is not a readable .mat file"),
        (b"", "g.mat is not a readable .mat file"),
        (b"MATLAB 7.3 MAT-file".ljust(124, b" ") + bytes([0, 2]) + b"IM" + bytes(400),
         r"g.mat is a MATLAB 7.3 \(HDF5\) file; save it in MATLAB with -v7"),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_bad_files(tmp_path: Path, content: dict[str, object] | bytes, message: str) -> None:
    if isinstance(content, dict):
        save(tmp_path / "g.mat", **content)
    check_read(tmp_path, {} if isinstance(content, dict) else {"g.mat": content}, message, {"load": "g.mat"})


LIMIT = "takes more than 2.0 GiB of memory or 120 seconds to read, .*; free some, or convert the file to tables"


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("os.kill(os.getpid(), 9)", LIMIT), ("bytearray(1 << 60)", LIMIT), ("os.kill(os.getpid(), 24)", LIMIT),
        ("print('std::bad_alloc', file=sys.stderr, flush=True); os.abort()", LIMIT),
        ("os.kill(os.getpid(), 11)", "is not a readable .mat file: its reader crashed, so the file is damaged"),
    ],
)  # fmt: skip
def test_a_reader_without_memory_or_time_does_not_call_the_file_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, message: str
) -> None:
    (tmp_path / "reader.py").write_text(f"import os, sys\n{end}\n")
    monkeypatch.setattr(mat_content, "__file__", str(tmp_path / "reader.py"))
    with pytest.raises(NeuPathError, match=f"g.mat {message}"):
        npth.load(save(tmp_path / "g.mat", movie_actor=np.eye(2)))


def test_a_folder_of_results_next_to_it_is_not_a_table(tmp_path: Path) -> None:
    save(tmp_path / "g.mat", movie_actor=np.eye(2))
    (tmp_path / "results").mkdir()
    pq.write_table(pa.table({"query": ["a"], "rank": [1]}), tmp_path / "results" / "top.parquet")
    assert shape(npth.load(tmp_path)) == {"movie -movie_actor-> actor": 2}
