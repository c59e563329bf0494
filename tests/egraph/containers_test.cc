// Containers and big numbers in the text language.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "egraph/egraph.h"
#include "egraph/program.h"

namespace l3c::egraph {
namespace {

// What the program prints, or its error.
std::string Output(std::string_view text) {
  EGraph graph;
  const ProgramResult result = LoadProgram(graph, text, "t.egg");
  return result.ok() ? result.output() : result.status.ToString();
}

TEST(Containers, Vectors) {
  EXPECT_EQ(Output(R"(
    (sort V (Vec i64))
    (sort W (Vec V))
    (let v (vec-of 5 6 7))
    (check (= (vec-length v) 3) (= (vec-get v 2) 7))
    (check (= (vec-push (vec-empty) 5) (vec-of 5)))
    (check (= (vec-pop v) (vec-append (vec-of 5) (vec-of) (vec-of 6))))
    (check (= (vec-set v 0 9) (vec-of 9 6 7)) (= (vec-remove v 1) (vec-of 5 7)))
    (check (vec-contains v 6) (vec-not-contains v 8))
    (check (= (vec-range 3) (vec-of 0 1 2)))
    (fail (check (= (vec-get v 3) x)))
    (fail (check (= (vec-get v -1) x)))
    (fail (check (= (vec-set v 3 0) x)))
    (extract (vec-of v (vec-empty)))
    (extract (vec-get (vec-of v) 0)))"),
            "(vec-of (vec-of 5 6 7) (vec-empty))\n(vec-of 5 6 7)\n");
}

TEST(Containers, SetsAndMultiSets) {
  EXPECT_EQ(
      Output(R"(
    (sort S (Set i64))
    (let s (set-of 3 1 2 1))
    (check (= s (set-insert (set-insert (set-of 2) 1) 3)) (= (set-length s) 3))
    (check (= (set-union s (set-of 9)) (set-of 9 1 2 3)))
    (check (= (set-diff s (set-of 1 7)) (set-of 2 3)))
    (check (= (set-intersect s (set-of 1 7)) (set-of 1)))
    (check (= (set-remove s 7) s) (set-contains s 1) (set-not-contains s 7))
    (sort M (MultiSet String))
    (let m (multiset-of "b" "a" "b"))
    (check (= (multiset-length m) 3) (= (multiset-count m "b") 2))
    (check (= (multiset-remove m "b") (multiset-of "a" "b")))
    (check (= (multiset-pick-max m) "b"))
    (check (= (multiset-subtract m (multiset-of "b" "b")) (multiset-of "a")))
    (fail (check (= (multiset-subtract m (multiset-of "a" "a")) x)))
    (check (= (multiset-sum m m) (multiset-of "a" "a" "b" "b" "b" "b")))
    (check (= (multiset-reset-counts m) (multiset-single "a" 1) ))
  )"),
      "t.egg:17:12: error: check failed: no match for '(= (multiset-reset-counts m) "
      "(multiset-single \"a\" 1))'; '(multiset-reset-counts m)' is (multiset-of \"b\" \"a\"); "
      "'(multiset-single \"a\" 1)' is (multiset-of \"a\")");
}

TEST(Containers, MapsAndPairs) {
  EXPECT_EQ(Output(R"(
    (sort M (Map String i64))
    (let m (map-of "a" 1 "b" 2 "a" 3))
    (check (= m (map-insert (map-insert (map-empty) "b" 2) "a" 3)) (= (map-length m) 2))
    (check (= (map-get m "a") 3) (map-contains m "b") (map-not-contains m "c"))
    (check (= (map-remove m "a") (map-of "b" 2)))
    (fail (check (= (map-get m "c") x)))
    (sort P (Pair i64 String))
    (let p (pair 1 "x"))
    (check (= (pair-first p) 1) (= (pair-second p) "x"))
    (extract p))"),
            "(pair 1 \"x\")\n");
}

TEST(Containers, FollowTheClassesInThem) {
  // Uniting a and b makes two sets equal, and so two terms that hold them, and so a third.
  EXPECT_EQ(Output(R"(
    (datatype* (T (A) (B) (All S) (F T)) (sort S (Set T)) (sort SS (Vec S)))
    (relation holds (SS))
    (let x (F (All (set-of (A) (B)))))
    (let y (F (All (set-of (A)))))
    (let nested (vec-of (set-of (A) (B)) (set-of (B))))
    (holds nested)
    (holds (vec-of (set-of (A)) (set-of (A))))
    (fail (check (= x y)))
    (print-size holds)
    (union (A) (B))
    (check (= x y))
    (print-size All)
    (print-size holds)
    (check (= nested (vec-of (set-of (B)) (set-of (A)))))
    (extract y))"),
            "2\n1\n1\n(F (All (set-of (A))))\n");
}

TEST(Containers, RulesSeeWhatRebuildingHasChanged) {
  EXPECT_EQ(Output(R"(
    (datatype* (T (N i64) (Sum V)) (sort V (Vec T)))
    (rewrite (Sum (vec-of (N x))) (N x))
    (rewrite (Sum v) (Sum (vec-pop v)) :when ((> (vec-length v) 1) (= (vec-get v 0) (vec-get v 1))))
    (let t (Sum (vec-of (N 1) (N 2))))
    (run 5)
    (fail (check (= t (N 1))))
    (union (N 1) (N 2))
    (run 5)
    (check (= t (N 1))))"),
            "");
}

TEST(Containers, OverloadsBySort) {
  EXPECT_EQ(
      Output(R"(
    (sort A (Vec i64))
    (sort B (Vec String))
    (datatype T (FromA A) (FromB B))
    (FromA (vec-empty))
    (FromB (vec-push (vec-empty) "s"))
    (function f () A :no-merge)
    (set (f) (vec-append (vec-empty) (vec-empty)))
    (check (= (f) (vec-empty)))
    (print-function FromB)
    (print-function f))"),
      "(\n   (FromB (vec-of \"s\")) -> (FromB (vec-of \"s\"))\n)\n(\n   (f) -> (vec-empty)\n)\n");
}

TEST(Containers, HigherOrderPrimitivesOfMultiSets) {
  constexpr char kSorts[] = R"(
    (datatype T (N i64) (Both T T) (Twice T))
    (sort M (MultiSet T))
    (relation big (T))
    (function parts (T) M :no-merge)
    (sort Each (UnstableFn (T) T)) (sort Holds (UnstableFn (T) Unit))
    (sort Many (UnstableFn (T) M)) (sort Two (UnstableFn (T T) T))
    (big (N 2))
    (set (parts (N 1)) (multiset-of (N 7) (N 8)))
    (let $m (multiset-of (N 1) (N 2) (N 2)))
  )";
  EXPECT_EQ(Output(std::string(kSorts) + R"(
    (check (= (unstable-multiset-filter (unstable-fn "big") $m) (multiset-of (N 2) (N 2))))
    (check (= (unstable-multiset-filter-not (unstable-fn "big") $m) (multiset-of (N 1))))
    (check (= (unstable-multiset-flat-map (unstable-fn "parts") $m)
              (multiset-of (N 7) (N 8) (N 2) (N 2))))
    (check (= (unstable-multiset-map (unstable-fn "Twice") $m) (multiset-of)))
    (let $twice (unstable-multiset-map (unstable-fn "Twice") $m))
    (check (= $twice (multiset-of (Twice (N 1)) (Twice (N 2)) (Twice (N 2)))))
    (extract (unstable-multiset-reduce (unstable-fn "Both") (N 0) $m))
    (extract (unstable-multiset-reduce (unstable-fn "Both") (N 0) (multiset-of)))
    (multiset-union-values (multiset-of (N 30) (N 31)))
    (check (= (N 30) (N 31)))
    (fail (multiset-union-values (multiset-of))))"),
            "(Both (Both (N 2) (N 2)) (N 1))\n(N 0)\n");
  // The containers that a map leads to may be declared last.
  EXPECT_EQ(Output(R"(
    (datatype A (N i64)) (sort As (MultiSet A))
    (datatype B (Of A)) (sort F (UnstableFn (A) B)) (sort Bs (MultiSet B))
    (extract (unstable-multiset-map (unstable-fn "Of") (multiset-of (N 1)))))"),
            "(multiset-of (Of (N 1)))\n");
}

TEST(Containers, AnIndexIsFilledAsAWhole) {
  EXPECT_EQ(Output(R"(
    (datatype T (N i64)) (sort M (MultiSet T))
    (function count (M T) i64 :merge (max old new))
    (sort Index (UnstableFn (M T) i64))
    (let $m (multiset-of (N 1) (N 1) (N 2)))
    (relation go ()) (go)
    (rule ((go)) ((unstable-multiset-fill-index $m (unstable-fn "count"))) :unsafe-seminaive)
    (run 1)
    (check (= 2 (count $m (N 1))) (= 1 (count $m (N 2))))
    (delete (count $m (N 1)))
    (unstable-multiset-fill-index $m (unstable-fn "count"))
    (print-size count)
    (unstable-multiset-clear-index $m (unstable-fn "count"))
    (print-size count))"),
            "1\n0\n");
}

TEST(Containers, Errors) {
  EXPECT_EQ(Output("(sort V (Vec i64 i64))"), "t.egg:1:9: error: 'Vec' takes 1 arguments, 2 given");
  EXPECT_EQ(Output("(sort V (Vec X))"), "t.egg:1:14: error: unknown sort 'X'");
  EXPECT_EQ(Output("(sort V (Vec i64))\n(let v (vec-of 1 \"a\"))"),
            "t.egg:2:8: error: no primitive 'vec-of' fits (vec-of i64 String)");
}

TEST(Big, RationalsStayFractionsOfI64) {
  EXPECT_EQ(Output(R"(
    (check (= (rational 2 -4) (rational -1 2)) (= (numer (rational 2 -4)) -1))
    (check (= (denom (rational 2 -4)) 2) (< (rational -1 2) (rational 1 3)))
    (check (= (bool-<= (rational 1 2) (rational 1 2)) true) (= 3 (to-i64 (rational 6 2))))
    (check (= (+ (rational 1 2) (rational 1 3)) (rational 5 6)))
    (check (= (/ (rational 1 2) (rational 1 4)) (rational 2 1)) (= 0.5 (to-f64 (rational 1 2))))
    (check (= (pow (rational 2 3) (rational -2 1)) (rational 9 4)) (= (sqrt (rational 4 9)) (rational 2 3)))
    (check (= (round (rational 5 2)) (rational 3 1)) (= (floor (rational -1 2)) (rational -1 1)))
    (fail (check (= (rational 1 0) x)))
    (fail (check (= (+ (rational 9223372036854775807 1) (rational 1 1)) x)))
    (fail (check (= (sqrt (rational 2 1)) x)))
    (extract (min (rational 1 2) (rational 1 3))))"),
            "(rational 1 3)\n");
}

TEST(Big, IntegersAndFractions) {
  EXPECT_EQ(Output(R"(
    (let big (* (from-string "123456789012345678901234567890") (bigint -10)))
    (extract big)
    (extract (/ (bigint 7) (bigint -2)))
    (check (= (% (bigint -7) (bigint 2)) (bigint -1)))
    (fail (check (= x (/ big (bigint 0)))))
    (check (< big (bigint 0)) (= (bits (bigint 255)) (bigint 8)))
    (check (= (<< (bigint 1) 100) (from-string "1267650600228229401496703205376")))
    (fail (check (= x (<< (bigint 1) 100000000))))
    (let half (bigrat (bigint 2) (bigint -4)))
    (extract half)
    (check (= (+ half half) (bigrat (bigint -1) (bigint 1))))
    (check (= (to-f64 half) -0.5) (= (abs half) (bigrat (bigint 1) (bigint 2))))
    (check (= (pow half (bigrat (bigint -3) (bigint 1))) (bigrat (bigint -8) (bigint 1))))
    (check (= (sqrt (bigrat (bigint 9) (bigint 4))) (bigrat (bigint 3) (bigint 2))))
    (check (= (floor half) (round half)) (= (numer half) (bigint -1)))
    (fail (check (= x (bigrat (bigint 1) (bigint 0)))))
    (fail (check (= x (from-string "1x")))))"),
            "(from-string \"-1234567890123456789012345678900\")\n(from-string \"-3\")\n"
            "(bigrat (from-string \"-1\") (from-string \"2\"))\n");
}

}  // namespace
}  // namespace l3c::egraph
