// The commands of the text language beyond rules and runs.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "egraph/egraph.h"
#include "egraph/extract/term.h"
#include "egraph/program.h"
#include "egraph/utf8.h"

namespace l3c::egraph {
namespace {

std::string Output(std::string_view text, const ProgramOptions& options = {}) {
  EGraph graph;
  const ProgramResult result = LoadProgram(graph, text, "t.egg", options);
  return result.ok() ? result.output() : result.output() + result.status.ToString();
}

TEST(Language, SizesOfAllTables) {
  EXPECT_EQ(Output(R"(
    (datatype T (B) (A T))
    (constructor Secret () T :internal-hidden)
    (A (A (B))) (Secret)
    (print-size)
    (print-size A))"),
            "((A 2)\n (B 1))\n2\n");
  EXPECT_EQ(Output("(print-size)"), "()\n");
}

TEST(Language, RowsOfAFunction) {
  EXPECT_EQ(Output(R"(
    (datatype T (N i64))
    (relation near (T i64))
    (function name (T) String :no-merge)
    (near (N 1) 7) (near (N 2) 8)
    (set (name (N 1)) "a,\"b\"")
    (print-function near)
    (print-function near 1)
    (print-function name)
    (print-function name :mode csv))"),
            "(\n   (near (N 1) 7) -> (near (N 1) 7)\n   (near (N 2) 8) -> (near (N 2) 8)\n)\n"
            "(\n   (near (N 1) 7) -> (near (N 1) 7)\n)\n"
            "(\n   (name (N 1)) -> \"a,\\\"b\\\"\"\n)\n"
            "name,(N 1),\"\"\"a,\\\"\"b\\\"\"\"\"\"\n");
}

TEST(Language, ExtractsByTreeCost) {
  EXPECT_EQ(Output(R"(
    (datatype T (Leaf i64) (Pair T T) (Dear T :cost 100) (Free :cost 0))
    (constructor Never () T :unextractable)
    (let x (Pair (Leaf 1) (Leaf 2)))
    (union x (Dear (Free)))
    (union x (Never))
    (extract x)
    (extract x 5)
    (extract x 1)
    (extract 3.5)
    (extract "q\"")
    (extract (Never) 0))"),
            "(Pair (Leaf 1) (Leaf 2))\n"
            "(\n   (Pair (Leaf 1) (Leaf 2))\n   (Dear (Free))\n)\n"
            "(\n   (Pair (Leaf 1) (Leaf 2))\n)\n3.5\n\"q\\\"\"\n(Pair (Leaf 1) (Leaf 2))\n");
  EGraph graph;
  const ProgramResult result = LoadProgram(
      graph, "(datatype T (Leaf i64) (F T T :cost 3)) (extract (F (Leaf 1) (Leaf 2)))", "t.egg");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.printed[0].cost, 7u);  // 3, and for each leaf one and one for its number
  EXPECT_EQ(Output("(datatype T (A)) (constructor N () T :unextractable) (extract (N))"),
            "t.egg:1:54: error: no term of finite cost to extract");
}

TEST(Language, FloatsAreWrittenOut) {
  EXPECT_EQ(Output("(extract 1e300) (extract 1e-7) (extract -0.0) (extract 100000.0)"),
            "1" + std::string(300, '0') + "\n0.0000001\n-0.0\n100000.0\n");
  EXPECT_EQ(Output("(extract 123456789.5) (extract 5e-324) (extract NaN) (extract -inf)"),
            "123456789.5\n0." + std::string(323, '0') + "5\nNaN\n-inf\n");
  // A point only where the number would read as an i64, as in egglog.
  EXPECT_EQ(
      Output("(extract 4611686018427387904.0) (extract 9223372036854775808.0) (extract 1e23)"),
      "4611686018427388000.0\n9223372036854776000\n100000000000000000000000\n");
}

TEST(Language, FloatsAsStringsHaveExponents) {
  const std::pair<const char*, const char*> cases[] = {
      {"3.0", "3.0"},
      {"0.0001", "0.0001"},
      {"0.00001", "1e-5"},
      {"1e15", "1000000000000000.0"},
      {"1e16", "1e16"},
      {"0.000012345", "1.2345e-5"},
      {"123456789012345678.0", "1.2345678901234568e17"},
      {"-0.0", "-0.0"},
      {"-2.5", "-2.5"},
      {"NaN", "NaN"},
      {"inf", "inf"},
      {"5e-324", "5e-324"}};
  for (const auto& [number, text] : cases) {
    EXPECT_EQ(Output("(extract (to-string " + std::string(number) + "))"),
              '"' + std::string(text) + "\"\n");
  }
}

TEST(Language, CombinedRulesets) {
  EXPECT_EQ(Output(R"(
    (relation n (i64))
    (ruleset a) (ruleset b) (ruleset c)
    (unstable-combined-ruleset ab a b)
    (unstable-combined-ruleset abc ab c)
    (rule () ((n 1)) :ruleset a)
    (rule () ((n 2)) :ruleset b)
    (rule () ((n 3)) :ruleset c)
    (run ab 1) (print-size n)
    (run abc 1) (print-size n)
    (fail (rule () ((n 4)) :ruleset abc))
    (fail (unstable-combined-ruleset abc a))
    (unstable-combined-ruleset d missing))"),
            "2\n3\nt.egg:13:34: error: unknown ruleset 'missing'");
}

TEST(Language, RulesThatReadFunctionsInActions) {
  EXPECT_EQ(Output(R"(
    (function f (i64) i64 :merge (max old new))
    (function g (i64) i64 :merge (max old new))
    (relation go (i64))
    (rule ((go x)) ((set (g x) (f x))) :naive)
    (set (f 1) 10)
    (go 1)
    (run 1)
    (check (= (g 1) 10))
    (set (f 1) 20)
    (run 1)
    (check (= (g 1) 20))
    (rule ((go x)) ((set (g x) (f 2))) :unsafe-seminaive)
    (run 1))"),
            "t.egg:14:5: error: function 'f' has no value for these arguments, read by rule '((go "
            "x))' (t.egg:13)");
  EXPECT_EQ(Output("(relation r ()) (rule ((r)) () :naive :unsafe-seminaive)"),
            "t.egg:1:39: error: :naive and :unsafe-seminaive exclude each other");
}

// egglog 13.2 calls it here for every match after the first 128.
TEST(Language, AMergeIsNotCalledForEqualNewTermsHoweverManyMatchesMakeThem) {
  for (const int facts : {2, 128, 129, 300}) {
    std::string text = R"(
      (datatype T (A i64) (M T T))
      (function f () T :merge (M old new))
      (relation go (i64))
      (rule ((go x)) ((set (f) (A 1)))))";
    for (int i = 0; i < facts; ++i) text += "(go " + std::to_string(i) + ")";
    EXPECT_EQ(Output(text + "(run 1) (print-size M) (extract (f))"), "0\n(A 1)\n") << facts;
  }
}

TEST(Language, MergesThatAddTerms) {
  EXPECT_EQ(Output(R"(
    (datatype T (N i64) (Both T T))
    (function f () T :merge (Both old new))
    (set (f) (N 1))
    (set (f) (N 2))
    (set (f) (f))
    (extract (f))
    (function limit () i64 :no-merge)
    (function capped () i64 :merge (min (limit) (+ old new)))
    (set (capped) 5)
    (fail (set (capped) 6))
    (set (limit) 7)
    (set (capped) 6)
    (extract (capped)))"),
            "(Both (N 1) (N 2))\n7\n");
}

TEST(Language, RewritesOfVariablesAndPrimitives) {
  EXPECT_EQ(Output(R"(
    (datatype T (N i64) (Wrap T))
    (relation special (T))
    (rewrite x (Wrap x) :when ((special x)))
    (special (N 1))
    (run 3)
    (check (= (N 1) (Wrap (N 1))))
    (rewrite (+ x 1) x :when ((= (N x) y))))"),
            "t.egg:8:14: error: values of i64 cannot be united");
}

TEST(Language, FactsAreEqualWhereTheirArgumentsAre) {
  EXPECT_EQ(Output(R"(
    (relation r (i64))
    (r 1) (r 2)
    (check (= (r 1) (r 1)) (= (r x) (r 2)))
    (fail (check (= (r 1) (r 2)))))"),
            "");
}

TEST(Language, ChecksSeeSubsumedTerms) {
  EXPECT_EQ(Output(R"(
    (datatype T (A T) (B))
    (relation seen (T))
    (let x (A (B)))
    (subsume (A (B)))
    (check (= x (A (B))))
    (rule ((A y)) ((seen y)))
    (run 1)
    (print-size seen))"),
            "0\n");
}

// A union that brings two facts into conflict fails in the middle of a rebuild. What had not been
// looked at by then is made congruent all the same.
TEST(Language, AFailureLeavesNothingBroken) {
  std::string text = "(datatype T (A) (B) (C i64) (F T) (G T T)) (function size (T) i64 :no-merge)";
  text += "(function rank (T) i64 :no-merge)";
  text += "(set (size (A)) 1) (set (size (B)) 2) (set (rank (A)) 1) (set (rank (B)) 2)";
  text += "(let fa (F (A))) (let fb (F (B))) (let ga (G fa (A))) (let gb (G fb (B)))";
  text += "(fail (union (A) (B)))";
  text += "(check (= fa fb)) (check (= ga gb)) (check (= (size (A)) 1)) (check (= (rank (B)) 1))";
  EGraph graph;
  const ProgramResult result = LoadProgram(graph, text, "fail.egg");
  EXPECT_EQ(result.status.ToString(), "ok");
  EXPECT_EQ(graph.LiveRows(graph.FindFunction("F")), 1u);
  EXPECT_EQ(graph.LiveRows(graph.FindFunction("size")), 1u);
  EXPECT_FALSE(graph.NeedsRebuild());
}

TEST(Language, FailTakesAnyError) {
  EXPECT_EQ(Output("(fail (nothing)) (fail (let x)) (fail (check (= 1 2))) (fail (panic \"p\"))"),
            "");
}

TEST(Language, UntilStopsItsRunAlone) {
  EXPECT_EQ(Output(R"(
    (relation a (i64)) (relation b (i64))
    (ruleset ra) (ruleset rb)
    (rule ((a x)) ((a (+ x 1))) :ruleset ra)
    (rule ((b x) (< x 5)) ((b (+ x 1))) :ruleset rb)
    (a 0) (b 0)
    (run-schedule (repeat 10 (run ra :until (a 2)) (run rb)))
    (print-size a) (print-size b))"),
            "3\n6\n");
}

TEST(Language, AFailedCheckNamesTheFactAndBothSides) {
  constexpr char kGraph[] =
      "(datatype T (N i64) (Add T T)) (function f (i64) i64 :merge new) (relation r (i64))\n"
      "(set (f 1) 2) (r 1) (r 5) (let $x (Add (N 1) (N 2))) (union $x (N 3)) (N 4)\n";
  const auto check = [&](const std::string& facts) {
    return Output(kGraph + ("(check " + facts + ")"));
  };
  EXPECT_EQ(check("(r 1) (r 7) (r 5)"), "t.egg:3:14: error: check failed: no match for '(r 7)'");
  EXPECT_EQ(check("(= (f 1) 3)"),
            "t.egg:3:8: error: check failed: no match for '(= (f 1) 3)'; '(f 1)' is 2");
  EXPECT_EQ(
      check("(= (f 9) 3)"),
      "t.egg:3:8: error: check failed: no match for '(= (f 9) 3)'; '(f 9)' is not in the e-graph");
  EXPECT_EQ(check("(= 3 (f (% 9 0)))"),
            "t.egg:3:8: error: check failed: no match for '(= 3 (f (% 9 0)))'; '(% 9 0)' has no "
            "value");
  EXPECT_EQ(
      check("(= (N 4) (Add (N 1) (N 2)))"),
      "t.egg:3:8: error: check failed: no match for '(= (N 4) (Add (N 1) (N 2)))'; '(N 4)' is "
      "(N 4); '(Add (N 1) (N 2))' is (N 3)");
  EXPECT_EQ(
      check("(= (N 4) $x)"),
      "t.egg:3:8: error: check failed: no match for '(= (N 4) $x)'; '(N 4)' is (N 4); '$x' is "
      "(N 3)");
  EXPECT_EQ(
      check("(r a) (= (f a) b) (r b)"),
      "t.egg:3:26: error: check failed: no match for '(r b)', which holds alone, together with "
      "the facts before it");
  EXPECT_EQ(
      check("(= a b) (r a) (= b 7)"),
      "t.egg:3:22: error: check failed: no match for '(= b 7)', which holds alone, together with "
      "the facts before it");
}

TEST(Language, UnknownNamesComeWithTheClosestOne) {
  constexpr char kGraph[] =
      "(datatype Math (Number i64)) (ruleset simplify) (let $value (Number 1))\n";
  const std::pair<const char*, const char*> cases[] = {
      {"(chekc (Number 1))", "unknown command or function 'chekc'; did you mean 'check'?"},
      {"(Numbr 1)", "unknown command or function 'Numbr'; did you mean 'Number'?"},
      {"(sort V (Vec Mtah))", "unknown sort 'Mtah'; did you mean 'Math'?"},
      {"(run simplfy 2)", "unknown ruleset 'simplfy'; did you mean 'simplify'?"},
      {"(rule () () :rulset simplify)", "unknown option ':rulset'; did you mean ':ruleset'?"},
      {"(check (= $value (Nmber 1)))",
       "unknown function or primitive 'Nmber'; did you mean 'Number'?"},
      {"(extract $valeu)", "unknown variable '$valeu'; did you mean '$value'?"},
      {"(print-size Numer)", "unknown function 'Numer'; did you mean 'Number'?"},
      {"(set (Unrelated 1) 2)", "unknown function 'Unrelated'"},
  };
  for (const auto& [text, message] : cases) {
    const std::string output = Output(std::string(kGraph) + text);
    EXPECT_TRUE(output.ends_with(message)) << output;
    EXPECT_EQ(output.rfind("t.egg:2:", 0), 0u) << output;
  }
}

TEST(Language, TextIsUtf8) {
  EXPECT_EQ(Output("(relation r (String))\n(r \"\xc3\xa4\xff\")"),
            "t.egg:2:6: error: the text is not UTF-8 here");
  for (const char* bad :
       {"\x80", "\xc0\xaf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    EXPECT_TRUE(
        Output(std::string("; ") + bad).ends_with("1:3: error: the text is not UTF-8 here"));
  }
  EXPECT_EQ(Output("(extract (replace \"\xc3\xa4o\" \"\" \"-\"))"
                   "(extract (count-matches \"\xe2\x82\xac\xf0\x9f\x98\x80\" \"\"))"),
            "\"-\xc3\xa4-o-\"\n3\n");
}

TEST(Language, ColumnsCountCharacters) {
  EXPECT_EQ(Output("(relation r (String))\n(r \"\xc3\xa4\xe6\xbc\xa2\") (q)"),
            "t.egg:2:10: error: unknown command or function 'q'");
  EXPECT_EQ(Output("\t(q)"), "t.egg:1:2: error: unknown command or function 'q'");
  // Lines as long as the text, where the place of every rule is asked for.
  std::string line = "(relation r (i64))";
  for (int i = 0; i < 3000; ++i) line += "(rule ((r x)) ((r x)) :name \"\xe6\xbc\xa2\")";
  EXPECT_EQ(Output(line + "(q 1)"), "t.egg:1:" + std::to_string(18 + 3000 * 32 + 1) +
                                        ": error: unknown command or function 'q'");
}

TEST(Language, AByteOrderMarkIsNoText) {
  EXPECT_EQ(Output("\xef\xbb\xbf(extract 1)"), "1\n");
  EXPECT_EQ(Output("\xef\xbb\xbf(q)"), "t.egg:1:1: error: unknown command or function 'q'");
  EXPECT_EQ(Output("\xef\xbb\xbf"), "");
  EXPECT_EQ(Output("(extract 1) \xef\xbb\xbf"),
            "1\nt.egg:1:13: error: expected a command, such as "
            "(check (= a b))");
}

TEST(Language, MessagesAreCutBetweenCharacters) {
  for (size_t length = 100; length < 125; ++length) {
    const std::string name = std::string(length, 'n') + "\xe6\xbc\xa2" + std::string(80, 'm');
    for (const std::string& text :
         {"(" + name + ")", "(extract " + name.substr(30) + ")",
          "(check (= 1 (+ 2 " + name.substr(30) + ")))",
          "(rule ((= " + name.substr(30) + " _)) ())", "(extract 1" + name.substr(70) + ")",
          "(check (= 2 1) (= \"" + name + "\" \"\"))", "(check (= \"" + name + "\" \"\"))"}) {
      const std::string output = Output(text);
      EXPECT_EQ(FindInvalidUtf8(output), std::string::npos) << output;
      EXPECT_LT(output.size(), 500u);
    }
  }
}

TEST(Language, NamesAreNotTakenTwice) {
  const std::pair<const char*, const char*> cases[] = {
      {"(let Wrap 3)", "'Wrap' is the name of a function"},
      {"(let $a 3)", "'$a' is bound already"},
      {"(relation $a ())", "'$a' is the name of a global"},
      {"(rule ((Wrap 1)) ((let Wrap 2)))",
       "variable 'Wrap' has the name of a function; give it another"},
      {"(rule ((Wrap a)) ())",
       "variable 'a' has the name of a global, with or without its '$'; give it another"},
      {"(rule ((Wrap 1)) ((let $a 2)))",
       "variable '$a' has the name of a global, with or without its '$'; give it another"},
      {"(rule ((Wrap 1)) ((let z 2) (let z 2)))", "'z' is bound already"},
      {"(check (= Wrap 1))", "variable 'Wrap' has the name of a function; give it another"},
  };
  for (const auto& [text, message] : cases) {
    const std::string output =
        Output(std::string("(datatype S (Wrap i64)) (let $a (Wrap 1))") + text);
    EXPECT_TRUE(output.ends_with(message)) << output;
  }
}

// In the step that unites x with y, (Neg (Neg x)) is stored under classes that are no longer their
// own; subsuming and deleting must find it all the same.
TEST(Language, RowsAreSubsumedAndDeletedAsTheyWereMatched) {
  EXPECT_EQ(Output(R"(
    (datatype T (A) (B) (F T) (G T) (Seen T))
    (ruleset later)
    (relation start ()) (start)
    (rule ((start)) ((union (A) (B))))
    (rule ((= e (F x))) ((union x (B)) (subsume (F x))))
    (rule ((G x)) ((delete (G x))))
    (rule ((F x)) ((Seen x)) :ruleset later)
    (rule ((G x)) ((Seen x)) :ruleset later)
    (B) (F (A)) (F (B)) (G (A)) (G (B))
    (run 1)
    (run later 1)
    (print-size F) (print-size G) (print-size Seen))"),
            "1\n0\n0\n");
}

// Two values set in one step are merged although the step also unites them, whatever comes first.
TEST(Language, MergesThatBuildTermsDoNotSeeTheUnionsOfTheirStep) {
  for (const char* rules : {"(rule ((go)) ((union (A) (B)) (set (f) (B))))",
                            "(rule ((go)) ((set (f) (B)) (union (A) (B))))"}) {
    EXPECT_EQ(Output(std::string(R"(
      (datatype T (A) (B) (Join T T))
      (function f () T :merge (Join old new))
      (relation go ()) (go)
      (set (f) (A)) (B))") +
                     rules + "(run 1) (print-size Join)"),
              "1\n");
  }
}

TEST(Language, FunctionsAsValues) {
  EXPECT_EQ(Output(R"(
    (datatype T (N i64) (Add T T))
    (sort Ts (Vec T))
    (sort Fn (UnstableFn (T) T))
    (sort Op (UnstableFn (i64) i64))
    (constructor Map (Ts Fn) T)
    (let add-one (unstable-fn "Add" (N 1)))
    (check (= (unstable-app (unstable-fn "+" 2) 3) 5))
    (let sum (unstable-app add-one (N 2)))
    (check (= sum (Add (N 1) (N 2))))
    (fail (check (= x (unstable-app add-one (N 7)))))
    (extract add-one)
    (let all (unstable-vec-map add-one (vec-of (N 2) (N 3))))
    (extract all)
    (sort Bag (MultiSet T))
    (check (= (multiset-length (multiset-of (N 2) (N 2))) 2))
    (let bag (unstable-multiset-map add-one (multiset-of (N 2) (N 2))))
    (check (= bag (multiset-of sum sum)))
    ; A captured class that is united makes two functions one.
    (let m (Map (vec-empty) (unstable-fn "Add" (N 4))))
    (union (N 4) (N 1))
    (check (= m (Map (vec-empty) add-one))))"),
            "(unstable-fn \"Add\" (N 1))\n(vec-of (Add (N 1) (N 2)) (Add (N 1) (N 3)))\n");
  EXPECT_EQ(Output("(sort F (UnstableFn (i64) i64))\n(let f (unstable-fn \"nothing\"))"),
            "t.egg:2:21: error: unknown function or primitive 'nothing'");
  EXPECT_EQ(Output("(sort F (UnstableFn (i64) i64))\n(let f (unstable-fn \"+\" \"a\"))"),
            "t.egg:2:8: error: no sort of functions fits '+' with 1 captured arguments");
}

TEST(Language, FunctionsOfFunctionsStopAtADepth) {
  // Each step wraps the function once more; beyond the bound the primitive gives nothing.
  EXPECT_EQ(Output(R"(
    (sort F (UnstableFn (i64) i64))
    (relation f (F))
    (f (unstable-fn "+" 1))
    (rule ((f x) (= y (unstable-fn "unstable-app" x))) ((f y)))
    (run-schedule (saturate (run)))
    (print-size f))"),
            "1000\n");
}

class Files : public testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::path(testing::TempDir()) /
        ("egg_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    options_.directory = directory_.string();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name, std::ios::binary) << text;
  }
  std::string Read(const std::string& name) {
    std::stringstream text;
    text << std::ifstream(directory_ / name, std::ios::binary).rdbuf();
    return text.str();
  }

  std::filesystem::path directory_;
  ProgramOptions options_;
};

TEST_F(Files, AreReadAndWritten) {
  Write("edges.tsv", "1\t2\n2\t 3 \n\n");
  Write("names.tsv", "1\tone\n2\t\"two\"\n");
  Write("rules.egg",
        "(relation path (i64 i64))\n(rule ((edge x y)) ((path x y)))\n(print-size edge)");
  EXPECT_EQ(Output(R"(
    (relation edge (i64 i64))
    (input edge "edges.tsv")
    (include "rules.egg")
    (run 1)
    (function name (i64) String :no-merge)
    (input name "names.tsv")
    (check (path 2 3) (= (name 2) "\"two\""))
    (print-function edge :file "rows.txt")
    (datatype T (A T) (B))
    (output "terms.txt" (A (B)) 7)
    (output "terms.txt" (B)))",
                   options_),
            "2\n");
  EXPECT_EQ(Read("rows.txt"), "(\n   (edge 1 2) -> (edge 1 2)\n   (edge 2 3) -> (edge 2 3)\n)\n");
  EXPECT_EQ(Read("terms.txt"), "(A (B))\n7\n(B)\n");
}

TEST_F(Files, ThatAreWrongAreErrors) {
  Write("bad.tsv", "1\t2\n3\n");
  Write("bad.egg", "(sort A)\n (oops)");
  Write("loop.egg", "(include \"loop.egg\")");
  const std::string relation = "(relation edge (i64 i64)) ";
  EXPECT_NE(Output(relation + "(input edge \"bad.tsv\")", options_)
                .find("bad.tsv' line 2: expected 2 columns of 'edge'"),
            std::string::npos);
  EXPECT_NE(Output(relation + "(input edge \"none.tsv\")", options_)
                .find("t.egg:1:39: error: cannot read"),
            std::string::npos);
  EXPECT_NE(Output("(include \"bad.egg\")", options_).find("bad.egg:2:2: error: unknown command"),
            std::string::npos);
  EXPECT_NE(
      Output("(include \"loop.egg\")", options_).find("files include each other deeper than 50"),
      std::string::npos);
  EXPECT_EQ(Output("(include \"rules.egg\")"),
            "t.egg:1:10: error: this program may not read or write files");
}

TEST_F(Files, ThatIncludeOthersManyTimesAreRefused) {
  // Were all of them read, the last one would be 2^30 times.
  for (int i = 0; i < 30; ++i) {
    const std::string next = "(include \"" + std::to_string(i + 1) + ".egg\")";
    Write(std::to_string(i) + ".egg", next + next);
  }
  Write("30.egg", "");
  EXPECT_NE(Output("(include \"0.egg\")", options_).find("more than 10000 files are included"),
            std::string::npos);
}

TEST_F(Files, PipesAndFoldersAreNotWaitedFor) {
  ASSERT_EQ(mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  for (const char* command : {"(include \"pipe\")", "(input r \"pipe\")", "(output \"pipe\" 1)",
                              "(print-stats :file \"pipe\")"}) {
    const std::string output = Output("(relation r (i64))\n" + std::string(command), options_);
    EXPECT_NE(output.find("pipe' is a pipe"), std::string::npos) << output;
    EXPECT_TRUE(output.starts_with("t.egg:2:")) << output;
  }
  EXPECT_NE(Output("(include \".\")", options_).find("is a folder"), std::string::npos);
  EXPECT_NE(Output(std::string("(include \"a\0b\")", 15), options_).find("has no NUL"),
            std::string::npos);
}

TEST_F(Files, WhatIsWrittenCountsAsOutput) {
  options_.max_output = 2000;
  const std::string graph =
      "(datatype T (A) (F T T)) (rewrite (F x y) (F y x) :name \"turn\") (let $a (A))\n"
      "(let $t (F (F $a (F $a $a)) $a)) (run 3)\n";
  const auto refused = [&](const std::string& command) {
    EXPECT_NE(
        Output(graph + command, options_).find("error: the program prints more than 2000 bytes"),
        std::string::npos)
        << command;
  };
  std::string many;
  for (int i = 0; i < 100; ++i) many += " $t";
  const auto often = [](const std::string& command) {
    std::string all;
    for (int i = 0; i < 100; ++i) all += command + "\n";
    return all;
  };
  refused("(output \"o.txt\"" + many + ")");
  refused(often("(output \"o.txt\" $t)"));
  refused(often("(print-function F :file \"f.txt\")"));
  refused(often("(print-stats :file \"s.txt\")"));
  refused(often("(why-not $a $t)"));
  refused(often("(prove (= $t (F $a (F $a (F $a $a)))))"));
  refused(often("(prove-exists F)"));
  EXPECT_LE(Read("o.txt").size(), 2000u);
}

// Vectors of two, each holding the one before twice: as a tree, the last has 2^levels leaves.
std::string SharedVectors(int levels, const std::string& leaf, const std::string& sort) {
  std::string text = "(sort V0 (Vec " + sort + "))\n(let $v0 (vec-of " + leaf + " " + leaf + "))\n";
  for (int i = 1; i < levels; ++i) {
    const std::string n = std::to_string(i), before = std::to_string(i - 1);
    text += "(sort V" + n + " (Vec V" + before + "))\n(let $v" + n + " (vec-of $v" + before +
            " $v" + before + "))\n";
  }
  return text;
}

TEST(Language, ContainersThatShareAreLookedAtOnce) {
  // A class of the vectors gets cheaper again and again: constructors are declared against the
  // order in which their costs are known, so that sweeps do not settle them.
  std::string text = "(sort T)\n";
  for (int i = 40; i > 0; --i) text += "(constructor F" + std::to_string(i) + " (T) T)\n";
  text += "(constructor Z () T :cost 0)\n(let $leaf ";
  for (int i = 40; i > 0; --i) text += "(F" + std::to_string(i) + " ";
  text += "(Z)" + std::string(40, ')') + ")\n" + SharedVectors(60, "$leaf", "T") +
          "(constructor Of (V59) T)\n(let $of (Of $v59))\n";
  EGraph graph;
  ASSERT_EQ(LoadProgram(graph, text, "t.egg").status.ToString(), "ok");
  const TermExtractor terms(graph);
  const EGraph::Global leaf = *graph.FindGlobal("$leaf"), of = *graph.FindGlobal("$of"),
                       v50 = *graph.FindGlobal("$v50");
  EXPECT_EQ(terms.Cost(leaf.sort, leaf.value), 40u);
  EXPECT_EQ(terms.Cost(v50.sort, v50.value), uint64_t{40} << 51);
  // 40 · 2^60 is more than there is room for.
  EXPECT_EQ(terms.Cost(of.sort, of.value), std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(terms.Text(of.sort, of.value, 100)->ends_with("…"));
  EXPECT_EQ(terms.Variants(of.sort, of.value, 3, 10).size(), 1u);
}

TEST(Language, MessagesOfContainersThatShareAreShort) {
  const std::string text = SharedVectors(60, "1", "i64") +
                           "(function f (i64) V59 :no-merge)\n(set (f 1) $v59)\n"
                           "(let $w (vec-of $v58))\n(set (f 1) $w)";
  const std::string output = Output(text);
  EXPECT_NE(output.find("conflicting values for (f 1): (vec-of (vec-of"), std::string::npos);
  EXPECT_LT(output.size(), 1000u);
}

TEST(Language, PartsOfARuleThatShareLittleAreNotMultiplied) {
  // Eight kinds of 200 rows each, tied together only by the list at the end: a join that goes
  // through the kinds first would meet 200^8 combinations.
  std::string text =
      "(datatype* (K (Kind i64 i64)) (E (Op K L)) (L (Nil) (Cons E L)))\n(relation hit ())\n";
  std::string facts = "(rule (", chain = "(Nil)";
  for (int i = 0; i < 8; ++i) {
    const std::string e = "e" + std::to_string(i);
    facts += "(= " + e + " (Op (Kind a" + std::to_string(i) + " b" + std::to_string(i) + ") " +
             (i == 0 ? "(Nil)" : "(Cons e" + std::to_string(i - 1) + " (Nil))") + "))";
  }
  text += facts + ") ((hit)))\n";
  for (int i = 0; i < 200; ++i) {
    const std::string n = std::to_string(i);
    text += "(Op (Kind " + n + " 0) " +
            (i == 0 ? "(Nil)" : "(Cons (Op (Kind " + std::to_string(i - 1) + " 1) (Nil)) (Nil))") +
            ")\n";
  }
  EGraph graph;
  ProgramOptions options;
  options.budget.max_seconds = 20;
  const ProgramResult result = LoadProgram(graph, text + "(run 1)", "t.egg", options);
  ASSERT_TRUE(result.ok()) << result.status.ToString();
  EXPECT_TRUE(result.reports[0].reproducible());
}

}  // namespace
}  // namespace l3c::egraph
