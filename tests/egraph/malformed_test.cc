// Programs that are wrong or hostile in every way that is known: each is refused soon, at its
// place, with a message of a line.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "egraph/program.h"

namespace l3c::egraph {
namespace {

std::string Error(const std::string& text) {
  EGraph graph;
  ProgramOptions options;
  options.budget.max_bytes = 64 << 20;
  return LoadProgram(graph, text, "t.egg", options).status.ToString();
}

std::string Times(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

const std::string kTerms = "(datatype T (A) (B i64) (F T T))\n";

struct Case {
  std::string text, place, message;
};

TEST(Malformed, ProgramsAreRefusedAtTheirPlace) {
  const std::vector<Case> cases = {
      {"(let $x 1e999)", "1:9", "'1e999' is not a number"},
      {"(let $x 1e-999)", "1:9", "'1e-999' is not a number"},
      {"(let $x 12ab)", "1:9", "'12ab' is not a number"},
      {"(let $x 0x1f)", "1:9", "'0x1f' is not a number"},
      {R"((let $x "\u0041"))", "1:10", R"(unknown escape in a string; \n \t \r \\ \" are known)"},
      {R"((let $x "\0"))", "1:10", R"(unknown escape in a string; \n \t \r \\ \" are known)"},
      {"(let $x \"abc\n\n", "1:9", "string without an end"},
      {"(let $x \"\xff"
       "\xfe"
       "\")",
       "1:10", "the text is not UTF-8 here"},
      {"(let $x \"\xc0"
       "\x80"
       "\")",
       "1:10", "the text is not UTF-8 here"},
      {kTerms + "(rewrite (F x y) (F x z))", "2:23", "unknown variable 'z'"},
      {"(let $x y)", "1:9", "unknown variable 'y'"},
      {"(let $x (zz 1))", "1:10", "unknown function or primitive 'zz'"},
      {kTerms + "(let $x (F $x $x))", "2:12", "unknown variable '$x'"},
      {"(datatype i64 (A))", "1:11", "sort 'i64' is declared already"},
      {"(function + (i64) i64 :no-merge)", "1:11", "'+' is declared already"},
      {"(datatype T (= i64))", "1:14", "'=' is declared already"},
      {kTerms + "(let A 1)", "2:6", "'A' is the name of a function"},
      {"(datatype T (A) (A))", "1:18", "'A' is declared already"},
      {"(datatype* (T (A U)))", "1:18", "unknown sort 'U'"},
      {"(sort V (Vec V))", "1:14", "unknown sort 'V'"},
      {"(sort V (Vec i64))(sort V (Vec i64))", "1:25", "sort 'V' is declared already"},
      {"(sort M (Map i64))", "1:9", "'Map' takes 2 arguments, 1 given"},
      {"(function f)", "1:1", "expected (function NAME (SORT...) SORT :merge EXPR)"},
      {"()", "1:1", "expected a command, such as (check (= a b))"},
      {"(())", "1:1", "expected a command, such as (check (= a b))"},
      {"(1 2 3)", "1:1", "expected a command, such as (check (= a b))"},
      {R"(("check" 1))", "1:1", "expected a command, such as (check (= a b))"},
      {"check", "1:1", "expected a command, such as (check (= a b))"},
      {"(let $x (pow (bigrat (bigint 10) (bigint 1)) (bigrat (bigint 1000000000000) (bigint 1))))",
       "1:1", "primitive 'pow' gives nothing in an action of the input"},
      {"(let $x (<< (bigint 1) 9223372036854775807))", "1:1",
       "primitive '<<' gives nothing in an action of the input"},
      {"(let $x (<< (bigint 1) -9223372036854775808))", "1:1",
       "primitive '<<' gives nothing in an action of the input"},
      {"(function b () BigInt :merge (* old old))(set (b) (bigint 3))(relation t (i64))(t 0)(rule "
       "((t n) (= x (b))) ((set (b) (+ x (bigint 1))) (t (+ n 1))))(run 100)",
       "1:150",
       R"~(the merge gives nothing for (b): (from-string "887962166988789307357823543991403751315632374177170130653096196199004607669160726732104770447558241560296821142393896590521084816646385616459203458900408793864704013155602575776269940775… from rule '((t n) (= x (b)))' (t.egg:1), (from-string "203833073901997591706761649531622703729941496157247622252374300248211070091640435164480388678326554258832254239324253623305602077170153067746826409575660907552393966691778715425005217462… from rule '((t n) (= x (b)))' (t.egg:1): primitive '*' gives nothing in an action of rule '((t n) (= x (b)))' (t.egg:1))~"},
      {"(let $x (<< 1 64))", "1:1", "primitive '<<' gives nothing in an action of the input"},
      {"(let $x (>> 1 -1))", "1:1", "primitive '>>' gives nothing in an action of the input"},
      {"(let $x (+ 9223372036854775807 1))", "1:1",
       "primitive '+' gives nothing in an action of the input"},
      {"(let $x (* 3037000500 3037000500))", "1:1",
       "primitive '*' gives nothing in an action of the input"},
      {"(let $x (- -9223372036854775808))", "1:1",
       "primitive '-' gives nothing in an action of the input"},
      {"(let $x (abs -9223372036854775808))", "1:1",
       "primitive 'abs' gives nothing in an action of the input"},
      {"(let $x (/ 1 0))", "1:1", "primitive '/' gives nothing in an action of the input"},
      {"(let $x (% 1 0))", "1:1", "primitive '%' gives nothing in an action of the input"},
      {"(let $x (/ -9223372036854775808 -1))", "1:1",
       "primitive '/' gives nothing in an action of the input"},
      {"(let $x (% -9223372036854775808 -1))", "1:1",
       "primitive '%' gives nothing in an action of the input"},
      {"(let $x (log2 0))", "1:1", "primitive 'log2' gives nothing in an action of the input"},
      {"(let $x (log2 -1))", "1:1", "primitive 'log2' gives nothing in an action of the input"},
      {"(let $x (to-i64 NaN))", "1:1",
       "primitive 'to-i64' gives nothing in an action of the input"},
      {"(let $x (to-i64 inf))", "1:1",
       "primitive 'to-i64' gives nothing in an action of the input"},
      {"(let $x (to-i64 1e300))", "1:1",
       "primitive 'to-i64' gives nothing in an action of the input"},
      {"(function f (f64) i64 :merge (min old new))(set (f NaN) 1)(set (f (- inf inf)) 0)(set (f "
       "-0.0) 5)(set (f 0.0) 6)(print-function f 5)(check (= (f NaN) 7))",
       "1:140", "check failed: no match for '(= (f NaN) 7)'; '(f NaN)' is 0"},
      {"(sort V (Vec i64))(let $x (vec-range 10000000))", "1:19",
       "primitive 'vec-range' gives nothing in an action of the input"},
      {"(sort V (MultiSet i64))(let $x (multiset-single 1 1000000000000))", "1:24",
       "primitive 'multiset-single' gives nothing in an action of the input"},
      {R"((function s () String :merge (+ old new))(set (s) "aaaaaaaaaaaaaaaa")(relation t (i64))(t 0)(rule ((t n) (= x (s))) ((set (s) x) (set (s) (+ x "b")) (t (+ n 1))))(run 1000))",
       "1:163",
       R"~(the merge gives nothing for (s): "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabbaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabbaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa… from rule '((t n) (= x (s)))' (t.egg:1), "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabbaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabbaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa… from rule '((t n) (= x (s)))' (t.egg:1): primitive '+' gives nothing in an action of rule '((t n) (= x (s)))' (t.egg:1))~"},
      {"(run 99999999999999999999999)", "1:6", "integer out of the range of i64"},
      {"(run -1)", "1:6", "a count is not negative"},
      {"(run-schedule (repeat -1 (run)))", "1:15", "expected (repeat N SCHEDULE...)"},
      {"(push 999999999999)", "1:1", "more than 100000 pushes"},
      {"(pop 999999999999)", "1:1", "pop without a push"},
      {"(push -1)", "1:7", "expected a count"},
      {kTerms + "(extract (A) -1)", "2:14", "expected a number of variants"},
      {kTerms + R"((extract (A) "x"))", "2:14", "expected a number of variants"},
      {kTerms + "(print-function A -1)", "2:19", "expected a count"},
      {"(datatype T (A :cost 99999999999999999999))", "1:22", "integer out of the range of i64"},
      {kTerms + "(let $x (F (A) (A)))(union $x (A))(delete (A))(extract $x)", "2:47",
       "no term of finite cost to extract"},
      {kTerms + "(let $a (A))(let $x (F $a $a))(union $x $a)(delete (A))(extract $x)", "2:56",
       "no term of finite cost to extract"},
      {"(constructor A () i64)", "1:19",
       "a constructor makes values of a declared sort, not of i64"},
      {"(union 1 2)", "1:1", "values of i64 cannot be united"},
      {R"((function f () i64 :merge (+ old "x")))", "1:27", "no primitive '+' fits (+ i64 String)"},
      {"(function f () i64 :merge (/ old new))(set (f) 1)(set (f) 0)", "1:50",
       "the merge gives nothing for (f): 1 from the input, 0 from the input: primitive '/' gives "
       "nothing in an action of the input"},
      {"(function f () i64 :merge older)", "1:27", "unknown variable 'older'"},
      {"(function f () i64 :merge (f))(set (f) 1)(set (f) 2)", "1:28",
       "unknown function or primitive 'f'"},
      {"(function g () i64 :merge (+ (g) 1))(set (g) 1)(set (g) 2)(set (g) 3)", "1:31",
       "unknown function or primitive 'g'"},
      {"(rule x y)", "1:1", "expected (rule (FACT...) (ACTION...))"},
      {"(rule () () :name)", "1:13", "':name' needs a value"},
      {"(rule () () :name foo)", "1:19", "expected a string"},
      {"(rule () () :ruleset zz)", "1:22", "unknown ruleset 'zz'"},
      {R"((rule () ((panic "x")))(run 1))", "1:24", "panic by rule '()' (t.egg:1): x"},
      {"(rewrite)", "1:1", "expected (rewrite LEFT RIGHT)"},
      {"(rewrite 1 2)", "1:10", "values of i64 cannot be united"},
      {"(rewrite x x)", "1:10", "variable 'x' is bound by no premise"},
      {kTerms + "(birewrite (F x y) (F y x) :subsume)", "2:1", "a birewrite cannot subsume"},
      {"(unstable-combined-ruleset a a)", "1:30", "unknown ruleset 'a'"},
      {"(unstable-combined-ruleset a b)", "1:30", "unknown ruleset 'b'"},
      {"(ruleset b)(unstable-combined-ruleset a b)(rule () () :ruleset a)", "1:64",
       "a combined ruleset has no rules of its own"},
      {R"((sort F (UnstableFn (i64) i64))(let $x (unstable-fn "nope")))", "1:53",
       "unknown function or primitive 'nope'"},
      {"(sort F (UnstableFn (i64) i64))(let $x (unstable-fn))", "1:40",
       R"(expected (unstable-fn "NAME" ARGUMENT...))"},
      {"(sort F (UnstableFn (i64) i64))(let $x (unstable-fn 1))", "1:40",
       R"(expected (unstable-fn "NAME" ARGUMENT...))"},
      {"(sort F (UnstableFn i64 i64))", "1:21", "expected a list of sorts"},
      {kTerms + "(prove (= (A) (B 1)))", "2:1", "no match for '(prove (= (A) (B 1)))'"},
      {kTerms + "(why-not (A) 1)", "2:1", "expected two terms of one declared sort"},
      {kTerms + "(why-not (A) x)", "2:14", "unknown variable 'x'"},
      {kTerms + "(A) garbage", "2:5", "expected a command, such as (check (= a b))"},
      {"(let-scheduler s (back-off :match-limit 0))", "1:28",
       "a count from 1 on must follow ':match-limit'"},
      {"(let-scheduler s (back-off :match-limit))", "1:28",
       "a count from 1 on must follow ':match-limit'"},
      {"(run-schedule (run-with zz))", "1:25",
       "unknown scheduler 'zz'; (let-scheduler NAME (back-off)) makes one"},
      {"(rule () () :numerics maybe)", "1:23", "expected exact, reassoc or fast"},
      {"(function f (i64) i64 :no-merge)(set (f 1 2) 3)", "1:38", "'f' takes 1 arguments, 2 given"},
      {kTerms + "(print-function A :mode xml)", "2:19",
       "expected :mode default, :mode csv or :file"},
      {"(print-stats :file)", "1:1", "'print-stats' takes 0 arguments, 1 given"},
      {"(subsume 1)", "1:10", "expected a call of a function"},
      {"(delete x)", "1:9", "expected a call of a function"},
      {"(panic 1)", "1:8", "expected a string"},
      {"(check true)", "1:8", "expected a fact: (= a b) or a call"},
      {"(check x)", "1:8", "expected a fact: (= a b) or a call"},
      {"(check (=))", "1:8", "'=' takes two or more arguments"},
      {"(check (= 1))", "1:8", "'=' takes two or more arguments"},
      {"(fail)", "1:1", "'fail' takes 1 arguments, 0 given"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Error(c.text), "t.egg:" + c.place + ": error: " + c.message) << c.text;
  }
}

TEST(Malformed, SizeIsNoExcuse) {
  const std::string deep = "parentheses nested deeper than 1000";
  const std::string wide = "more than 60 arguments";
  const std::string premises = "more than 500 premises in one query";
  const std::vector<Case> cases = {
      {Times("(", 1'000'000), "1:1001", deep},
      {Times(")", 1'000'000), "1:1", "')' without a '('"},
      {Times("(", 999) + Times(")", 999), "1:1", "expected a command, such as (check (= a b))"},
      {kTerms + "(let $x " + Times("(F (A) ", 100'000) + "(A)" + Times(")", 100'000), "2:6998",
       deep},
      {"(let $x " + Times("9", 100'000) + ")", "1:9", "integer out of the range of i64"},
      {"(let $x -" + Times("9", 100'000) + ")", "1:9", "integer out of the range of i64"},
      {"(relation r (" + Times("i64 ", 100'000) + "))", "1:13", wide},
      {"(datatype T (A " + Times("i64 ", 100'000) + "))", "1:13", wide},
      {kTerms + "(let $x (F " + Times("(A) ", 100'000) + "))", "2:9",
       "'F' takes 2 arguments, 100000 given"},
      {"(let $x (+ " + Times("\"a\" ", 100'000) + "))", "1:9", wide},
      {"(sort V (Vec i64))(let $x (vec-of " + Times("1 ", 100'000) + "))", "1:27", wide},
      {"(relation r (i64))(rule (" + Times("(r x) ", 100'000) + ") ())", "1:3026", premises},
      {"(relation r (i64))(run 1 :until " + Times("(r 1) ", 100'000) + ")", "1:3033", premises},
      {"(let $x (replace \"" + Times("a", 100'000) + "\" \"\" \"" + Times("b", 100'000) + "\"))",
       "1:1", "primitive 'replace' gives nothing in an action of the input"},
      {std::string(1000, '\0'), "1:1", "control character"},
      {std::string("(let $x a\0b)", 13), "1:10", "control character"},
      {Times("(sort S)", 2), "1:15", "sort 'S' is declared already"},
      {"(sort \xc3\x89)(constructor \xc3\xb1 () \xc3\x89)(\xc3\xb1 1)", "1:29",
       "'\xc3\xb1' takes 0 arguments, 1 given"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Error(c.text), "t.egg:" + c.place + ": error: " + c.message) << c.text.substr(0, 80);
  }
}

// What only takes long, or grows for ever, stops at a budget; what is empty however often ends.
TEST(Malformed, RunsWithoutEndStop) {
  const std::string count = "(relation r (i64)) (r 0) (rule ((r x)) ((r (+ x 1))))";
  const std::pair<std::string, StopReason> cases[] = {
      {count + "(run 99999999999)", StopReason::kByteLimit},
      {count + "(run-schedule (repeat 9223372036854775807 (saturate (run))))",
       StopReason::kByteLimit},
      {kTerms + "(rule ((= x (F a b)) (= y (F c d))) ((F x y) (F y x))) (F (A) (B 1)) (run 100)",
       StopReason::kByteLimit},
      {"(run-schedule (repeat 9223372036854775807 (seq)))", StopReason::kSaturated},
      {"(run-schedule (saturate (seq)))", StopReason::kSaturated},
      {"(run-schedule (saturate (let-scheduler b (back-off))))", StopReason::kSaturated},
      {"(ruleset a) (run-schedule (repeat 1000000000 (repeat 1000000000 (run a))))",
       StopReason::kSaturated},
      {"(run-schedule " + Times("(saturate ", 900) + "(run)" + Times(")", 901),
       StopReason::kSaturated},
  };
  for (const auto& [text, stop] : cases) {
    EGraph graph;
    ProgramOptions options;
    options.budget.max_bytes = 16 << 20;
    const ProgramResult result = LoadProgram(graph, text, "t.egg", options);
    ASSERT_TRUE(result.ok()) << result.status.ToString();
    ASSERT_EQ(result.reports.size(), 1u);
    EXPECT_EQ(result.reports[0].stop, stop) << text;
  }
}

}  // namespace
}  // namespace l3c::egraph
