"""Texts to TF-IDF, held to scikit-learn's vectorizers and to Python's own strings."""

import mmap
import pickle
import sys
import tempfile
from itertools import pairwise

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import (
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
    strip_accents_ascii,
    strip_accents_unicode,
)
from sklearn.pipeline import make_pipeline

from deltarank.datasets import TextVectorizer
from deltarank.datasets.text import analysis
from deltarank.datasets.text.characters import CAPITAL_SIGMA, character_flags, folding
from deltarank.datasets.text.kernels.characters import fold
from deltarank.datasets.text.vocabulary import Vocabulary

LANGUAGES = {
    "Finnish": ["Äiti lähti yöllä töihin.", "Yöllä satoi, ja äiti palasi kotiin – märkänä!", "Åbo"],
    "German": ["Die STRAẞE und die Straße", "Fußgänger überqueren die Straße, ÜBER Öl", "ẞẞ"],
    "Greek": ["ΟΔΥΣΣΕΥΣ και ΣΟΦΟΣ ΣΑΣ", "Ο σοφός Σωκράτης. ΑΣ ΠΑΜΕ", "ΑΣ' ΣΑΣ. Σ ΣΣ Σ́Σ"],
    "Turkish": ["İstanbul'da IŞIK ılık", "DİYARBAKIR Iğdır, ışık İİ", "istanbul ISPARTA İ"],
    "Russian": ["Ёлка и МОСКВА: привет, мир!", "Привет, ёлка... Йод", "ЩУКА щука_2"],
    "Chinese": ["我来到北京清华大学", "他来到了网易杭研大厦，北京。", "日本語テキスト ｶﾀｶﾅ ㌔"],
    "Arabic": ["مرحبا بالعالم العَرَبِيَّة", "اللغة العربية ١٢٣ ﷺ", "العالم العالم"],
    "Hindi": ["हिन्दी में लिखना है", "क्या हिन्दी भाषा है?", "में में"],
    "Emoji": ["👩‍👩‍👧 smile 😀😀 ok👍ok", "😀 ﬁne ﬀ ǅungla ǆ 𝒳𝒴 𐐀𐐨", "é e\u0301 E\u0301́"],
    "Odd": [
        "",
        " \t a  b\x1c\x1dc\u3000d\u200b\u2028e\n",
        "\x00x\x00 ab ab\x00 a\udc80b \ud800 xx",
    ],
}
OPTIONS = [
    {},
    {"ngram_range": (1, 3)},
    {"ngram_range": (2, 2), "lowercase": False},
    {"strip_accents": "unicode"},
    {"strip_accents": "ascii", "lowercase": False},
    {"analyzer": "char", "ngram_range": (1, 4)},
    {"analyzer": "char", "ngram_range": (3, 3), "strip_accents": "unicode"},
    {"analyzer": "char_wb", "ngram_range": (2, 5)},
    {"analyzer": "char_wb", "ngram_range": (4, 9), "strip_accents": "ascii"},
    {"sublinear_tf": True, "norm": "l1", "smooth_idf": False},
    {"norm": None, "use_idf": False},
    {"norm": None, "stop_words": ["die", "και", "है", "not there"], "ngram_range": (1, 2)},
]
EVERYTHING = [text for texts in LANGUAGES.values() for text in texts]


def assert_equal_to_theirs(options, train, test, tolerance=1e-12):
    theirs, ours = TfidfVectorizer(**options), TextVectorizer(**options)
    expected, found = theirs.fit_transform(train), ours.fit_transform(train)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert ours.vocabulary_ == theirs.vocabulary_
    assert found.has_canonical_format
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.toarray(), expected.toarray(), rtol=tolerance, atol=0)
    if options.get("use_idf", True):
        np.testing.assert_allclose(ours.idf_, theirs.idf_, rtol=tolerance)
    again = ours.transform(test)
    np.testing.assert_allclose(again.toarray(), theirs.transform(test).toarray(), rtol=tolerance)
    assert (clone(ours).fit(train).transform(test) != again).nnz == 0


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_gives_the_columns_and_values_of_scikit_learn(language, options):
    train = LANGUAGES[language]
    try:
        TfidfVectorizer(**options).fit(train)
    except ValueError:
        with pytest.raises(ValueError, match="hold no n-grams"):
            TextVectorizer(**options).fit(train)
    else:
        assert_equal_to_theirs(options, train, [*train[::-1], "new words", ""])


@pytest.mark.parametrize(
    "options",
    [
        {"min_df": 2}, {"max_df": 0.05}, {"min_df": 0.05, "max_df": 4}, {"stop_words": "english"},
        {"dtype": np.float32, "analyzer": "char", "ngram_range": (1, 2), "sublinear_tf": True},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("characters", [1, 60, 1 << 19])
def test_blocks_of_any_size_give_the_columns_and_values_of_scikit_learn(
    monkeypatch, options, characters
):
    monkeypatch.setattr(analysis, "BLOCK_CHARACTERS", characters)
    single = options.get("dtype") == np.float32
    texts = [*EVERYTHING, "the cat sat on the mat, and the dog sat down again"] * 2
    assert_equal_to_theirs(options, texts, texts[::-1], 1e-6 if single else 1e-12)


texts = st.text(
    st.one_of(
        st.sampled_from("aAbB09_ .\n\tßẞäÄΣσςİIıİée\u0301ﬁ北京и\u0928\u094d😀"), st.characters()
    ),
    max_size=30,
)


@settings(max_examples=100, deadline=None)
@given(
    documents=st.lists(texts, min_size=1, max_size=6),
    new=st.lists(texts, max_size=3),
    lowercase=st.booleans(),
    strip_accents=st.sampled_from([None, "unicode", "ascii"]),
    analyzer=st.sampled_from(["word", "char", "char_wb"]),
    shortest=st.integers(1, 3),
    more=st.integers(0, 3),
)
def test_any_text_gives_the_columns_and_values_of_scikit_learn(
    documents, new, lowercase, strip_accents, analyzer, shortest, more
):
    options = {
        "lowercase": lowercase, "strip_accents": strip_accents, "analyzer": analyzer,
        "ngram_range": (shortest, shortest + more),
    }  # fmt: skip
    try:
        TfidfVectorizer(**options).fit(documents)
    except ValueError:
        with pytest.raises(ValueError, match="hold no n-grams"):
            TextVectorizer(**options).fit(documents)
    else:
        assert_equal_to_theirs(options, documents, [*new, *documents])


ALL = [chr(code) for code in range(sys.maxunicode + 1)]


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize(
    ("strip_accents", "strip"),
    [(None, str), ("unicode", strip_accents_unicode), ("ascii", strip_accents_ascii)],
)
def test_every_character_is_folded_as_python_and_scikit_learn_do(lowercase, strip_accents, strip):
    # One by one where letters and accents are; those beyond at once, as they are not to change.
    parts = [*ALL[:0x30000], "".join(ALL[0x30000:])]
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    starts = np.cumsum([0, *map(len, encoded)])
    text = np.frombuffer(b"".join(encoded), np.uint8)
    folded, ends = fold(text, starts, folding(lowercase, strip_accents))
    expected = [strip(part.lower() if lowercase else part) for part in parts]
    blob = folded.tobytes()
    found = [blob[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(ends.tolist())]
    assert found == expected


def test_only_the_capital_sigma_is_lowered_by_what_stands_beside_it():
    changed = [c for c in ALL if c.lower() != c]
    assert [c for c in changed if ("a" + c).lower() != "a" + c.lower()] == [CAPITAL_SIGMA]
    assert [c for c in ALL if c.lower().lower() != c.lower()] == []


def test_flags_are_those_of_python():
    flags = character_flags()
    assert np.array_equal(flags & 1 != 0, [c.isalnum() or c == "_" for c in ALL])
    assert np.array_equal(flags & 2 != 0, [c.isspace() for c in ALL])


@pytest.mark.parametrize("options", [{}, {"analyzer": "char", "ngram_range": (2, 3)}])
@pytest.mark.parametrize("smooth", [True, False])
def test_hashed_columns_are_those_of_scikit_learn(options, smooth):
    hashing = HashingVectorizer(n_features=7, alternate_sign=False, norm=None, **options)
    documents = [text for text in EVERYTHING if "\ud800" not in text]  # which theirs cannot hash
    theirs = make_pipeline(hashing, TfidfTransformer(smooth_idf=smooth))
    expected = theirs.fit_transform(documents).toarray()
    ours = TextVectorizer(n_features=7, smooth_idf=smooth, **options)
    np.testing.assert_allclose(ours.fit_transform(documents).toarray(), expected, rtol=1e-12)
    np.testing.assert_allclose(ours.transform(documents).toarray(), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="have no names"):
        ours.get_feature_names_out()


def test_a_hashed_column_of_no_document_counts_like_one_of_a_single_document():
    vectorizer = TextVectorizer(n_features=1000, smooth_idf=False).fit(["aa bb", "aa"])
    assert np.allclose(np.unique(vectorizer.idf_), [1, np.log(2) + 1])


@pytest.mark.parametrize("most", [1, 3, 4, 100])
def test_the_most_frequent_are_kept_and_of_equals_the_first(most):
    documents = ["dd dd dd cc cc bb bb aa", "cc bb ee"]
    # dd, cc and bb occur three times, aa and ee once.
    kept = sorted(["bb", "cc", "dd", "aa", "ee"][:most])
    ours = TextVectorizer(max_features=most).fit(documents)
    assert ours.get_feature_names_out().tolist() == kept
    expected = TfidfVectorizer(vocabulary=kept).fit_transform(documents)
    np.testing.assert_allclose(ours.transform(documents).toarray(), expected.toarray(), rtol=1e-12)


def made_up(n_documents, seed=0):
    generator = np.random.default_rng(seed)
    letters = np.array(list("abcdeéñ京"))
    words = ["".join(generator.choice(letters, size)) for size in generator.integers(1, 7, 3000)]
    return [" ".join(generator.choice(words, 20)) for _ in range(n_documents)]


@pytest.mark.parametrize(
    "options", [{"ngram_range": (1, 2), "max_features": 5000}, {"n_features": 99}]
)
def test_threads_do_not_change_a_bit(monkeypatch, options):
    documents, results = made_up(400), []
    monkeypatch.setattr(analysis, "BLOCK_CHARACTERS", 2000)
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("DELTARANK_NUM_THREADS", threads)
        vectorizer = TextVectorizer(**options)
        X = vectorizer.fit_transform(documents)
        parts = X.data, X.indices, X.indptr, vectorizer.idf_, vectorizer.transform(documents).data
        results.append([part.tobytes() for part in parts])
    assert results[0] == results[1] == results[2]


def is_mapped(array):
    """Tell whether an array lies in a file."""
    while array is not None and not isinstance(array, mmap.mmap):
        array = getattr(array, "base", None)
    return array is not None


@pytest.mark.parametrize("options", [{"ngram_range": (1, 2), "min_df": 2}, {"n_features": 99}])
def test_rows_beyond_the_limit_lie_in_files_and_are_the_same(monkeypatch, tmp_path, options):
    monkeypatch.setattr(analysis, "BLOCK_CHARACTERS", 2000)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    documents = made_up(400)
    plain = TextVectorizer(**options)
    mapped = TextVectorizer(**options, memory_limit=20_000)
    for step in ("fit_transform", "transform"):
        expected, found = (getattr(each, step)(iter(documents)) for each in (plain, mapped))
        for part in ("data", "indices", "indptr"):
            assert getattr(found, part).tobytes() == getattr(expected, part).tobytes()
        assert is_mapped(found.data)
        assert not is_mapped(expected.data)
        assert (found @ np.ones(found.shape[1])).shape == (400,)
    assert list(tmp_path.iterdir()) == []


def test_many_long_keys_that_begin_alike_are_sorted_as_python_sorts():
    documents = [" ".join(f"beginning{i * 7919 % 5000}" for i in range(5000)), "beginning\u00e9 bb"]
    names = TextVectorizer(ngram_range=(1, 2)).fit(documents).get_feature_names_out().tolist()
    assert len(names) == 5000 + 4999 + 3
    assert names == sorted(names)


def test_documents_may_come_from_anything_that_is_read_once():
    documents = made_up(30)
    expected = TextVectorizer().fit_transform(documents)
    for given_as in (
        iter(documents),
        tuple(documents),
        np.array(documents),
        pandas.Series(documents),
    ):
        assert (TextVectorizer().fit_transform(given_as) != expected).nnz == 0


def test_a_copy_by_pickle_does_the_same():
    vectorizer = TextVectorizer().fit(EVERYTHING)
    again = pickle.loads(pickle.dumps(vectorizer))
    assert (again.transform(EVERYTHING) != vectorizer.transform(EVERYTHING)).nnz == 0


def test_no_documents_give_no_rows():
    assert TextVectorizer().fit(["one two"]).transform([]).shape == (0, 2)


@pytest.mark.parametrize(
    ("options", "documents", "problem"),
    [
        ({}, "one text", "raw_documents must be an iterable of strings; got 'one text'"),
        ({}, 3, "raw_documents must be an iterable of strings; got 3"),
        ({}, pandas.DataFrame({"a": ["b"]}), "one column of strings; got a table of 2 dimensions"),
        ({}, ["aa", b"bb"], "must be strings; number 1 is b'bb', of type bytes"),
        ({}, ["aa", np.nan], "must be strings; number 1 is nan, of type float"),
        ({}, [], "hold no n-grams"),
        ({}, ["a", "?"], "hold no n-grams: they are empty, or hold only stop words"),
        ({"analyzer": "words"}, ["aa"], "unknown analyzer 'words'; choose one of char"),
        ({"strip_accents": True}, ["aa"], "unknown strip_accents True; choose one of ascii"),
        ({"norm": "max"}, ["aa"], "unknown norm 'max'; choose one of l1, l2"),
        ({"ngram_range": (2, 1)}, ["aa"], r"ngram_range must be two integers.* got \(2, 1\)"),
        ({"ngram_range": 2}, ["aa"], "ngram_range must be two integers"),
        ({"ngram_range": (0, 1)}, ["aa"], "ngram_range must be two integers"),
        ({"stop_words": "finnish"}, ["aa"], "stop_words must be None, 'english' or a collection"),
        ({"stop_words": ["aa"], "analyzer": "char"}, ["aa"], "stop_words= is for analyzer='word'"),
        ({"min_df": 0}, ["aa"], "min_df must be a number of documents, 1 or more, or a share"),
        ({"max_df": 1.5}, ["aa"], "max_df must be a number of documents"),
        ({"max_features": 0}, ["aa"], "max_features must be a positive integer"),
        ({"n_features": 2.0}, ["aa"], "n_features must be a positive integer"),
        ({"n_features": 8, "min_df": 2}, ["aa"], "n_features= hashes n-grams without a vocabulary"),
        ({"min_df": 3, "max_df": 2}, ["aa"], "max_df=2 allows fewer of the 1 documents"),
        ({"min_df": 2}, ["aa", "bb"], "as many of the 2 documents as min_df=2 and max_df=1.0 want"),
        ({"dtype": np.int64}, ["aa"], "dtype must be float64 or float32"),
        ({"memory_limit": 0}, ["aa"], "memory_limit must be a positive number of bytes; got 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_changes_nothing(options, documents, problem):
    vectorizer = TextVectorizer().fit(["cc dd"]).set_params(**options)
    for fit in (vectorizer.fit, vectorizer.fit_transform):
        with pytest.raises(ValueError, match=problem):
            fit(documents)
    assert vectorizer.get_feature_names_out().tolist() == ["cc", "dd"]


def test_before_fit_there_is_nothing_to_transform_by():
    with pytest.raises(NotFittedError):
        TextVectorizer().transform(["aa"])


def test_a_vocabulary_is_equal_to_one_of_the_same_strings_only():
    assert Vocabulary.of(["ab", "c"]) == Vocabulary.of(["ab", "c"])
    assert Vocabulary.of(["ab", "c"]) != Vocabulary.of(["a", "bc"])
