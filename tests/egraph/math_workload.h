// A workload of symbolic calculus whose table sizes after each step are published: any engine that
// matches all rules, applies all matches and restores congruence counts the same e-nodes.
//
// The sizes are those of math-microbenchmark (egglog, oatlog); the rules are the textbook ones.
#pragma once

#include <cstddef>
#include <cstdint>

#include "egraph/egraph.h"

namespace l3c::egraph::math_workload {

inline constexpr char kLanguage[] = R"(
(datatype Term
  (D Term Term) (I Term Term)
  (Plus Term Term) (Minus Term Term) (Times Term Term) (Over Term Term) (Power Term Term)
  (Log Term) (Root Term) (Sine Term) (Cosine Term)
  (Num i64) (Sym String))
)";

inline constexpr char kRules[] = R"(
; commutative and associative
(rewrite (Plus x y) (Plus y x))
(rewrite (Times x y) (Times y x))
(rewrite (Plus x (Plus y z)) (Plus (Plus x y) z))
(rewrite (Times x (Times y z)) (Times (Times x y) z))
; neutral and absorbing elements, cancellation
(rewrite (Minus x y) (Plus x (Times (Num -1) y)))
(rewrite (Plus x (Num 0)) x)
(rewrite (Times x (Num 0)) (Num 0))
(rewrite (Times x (Num 1)) x)
(rewrite (Minus x x) (Num 0))
; distribution, both ways
(rewrite (Times x (Plus y z)) (Plus (Times x y) (Times x z)))
(rewrite (Plus (Times x y) (Times x z)) (Times x (Plus y z)))
; powers
(rewrite (Times (Power x y) (Power x z)) (Power x (Plus y z)))
(rewrite (Power x (Num 1)) x)
(rewrite (Power x (Num 2)) (Times x x))
; derivatives
(rewrite (D v (Plus x y)) (Plus (D v x) (D v y)))
(rewrite (D v (Times x y)) (Plus (Times x (D v y)) (Times y (D v x))))
(rewrite (D v (Sine v)) (Cosine v))
(rewrite (D v (Cosine v)) (Times (Num -1) (Sine v)))
; integrals
(rewrite (I (Num 1) v) v)
(rewrite (I (Cosine v) v) (Sine v))
(rewrite (I (Sine v) v) (Times (Num -1) (Cosine v)))
(rewrite (I (Plus f g) v) (Plus (I f v) (I g v)))
(rewrite (I (Minus f g) v) (Minus (I f v) (I g v)))
(rewrite (I (Times x y) v) (Minus (Times x (I y v)) (I (Times (D v x) (I y v)) v)))
)";

inline constexpr char kTerms[] = R"(
(I (Log (Sym "x")) (Sym "x"))
(I (Plus (Sym "x") (Cosine (Sym "x"))) (Sym "x"))
(I (Times (Cosine (Sym "x")) (Sym "x")) (Sym "x"))
(D (Sym "x") (Plus (Num 1) (Times (Num 2) (Sym "x"))))
(D (Sym "x") (Minus (Power (Sym "x") (Num 3)) (Times (Num 7) (Power (Sym "x") (Num 2)))))
(Plus (Times (Sym "y") (Plus (Sym "x") (Sym "y")))
      (Minus (Plus (Sym "x") (Num 2)) (Plus (Sym "x") (Sym "x"))))
(Over (Num 1)
      (Minus (Over (Plus (Num 1) (Root (Sym "five"))) (Num 2))
             (Over (Minus (Num 1) (Root (Sym "five"))) (Num 2))))
)";

// E-nodes after each step, the terms alone being step 0.
inline constexpr size_t kNodes[] = {35,   69,   118,   208,    389,     784,     1576,
                                    3160, 8113, 28303, 136446, 1047896, 15987528};

// The functions of kLanguage by name, to add the terms without a parser.
struct Language {
  explicit Language(const EGraph& g)
      : d(g.FindFunction("D")),
        i(g.FindFunction("I")),
        plus(g.FindFunction("Plus")),
        minus(g.FindFunction("Minus")),
        times(g.FindFunction("Times")),
        over(g.FindFunction("Over")),
        power(g.FindFunction("Power")),
        log(g.FindFunction("Log")),
        root(g.FindFunction("Root")),
        cosine(g.FindFunction("Cosine")),
        num(g.FindFunction("Num")),
        sym(g.FindFunction("Sym")) {}

  FunctionId d, i, plus, minus, times, over, power, log, root, cosine, num, sym;
};

// The same terms as kTerms, in the same order.
inline void AddTerms(EGraph& g, const Language& l) {
  const auto sym = [&](const char* name) { return g.Add(l.sym, {g.String(name)}); };
  const auto num = [&](int64_t n) { return g.Add(l.num, {g.I64(n)}); };
  const auto two = [&](FunctionId f, Value a, Value b) { return g.Add(f, {a, b}); };
  const auto one = [&](FunctionId f, Value a) { return g.Add(f, {a}); };
  const Value x = sym("x");
  two(l.i, one(l.log, x), x);
  const Value cosine = one(l.cosine, x);
  two(l.i, two(l.plus, x, cosine), x);
  two(l.i, two(l.times, cosine, x), x);
  const Value n1 = num(1);
  const Value n2 = num(2);
  two(l.d, x, two(l.plus, n1, two(l.times, n2, x)));
  const Value cube = two(l.power, x, num(3));
  const Value seven = num(7);
  two(l.d, x, two(l.minus, cube, two(l.times, seven, two(l.power, x, n2))));
  const Value y = sym("y");
  const Value product = two(l.times, y, two(l.plus, x, y));
  const Value sum = two(l.plus, x, n2);
  two(l.plus, product, two(l.minus, sum, two(l.plus, x, x)));
  const Value five = one(l.root, sym("five"));
  const Value golden = two(l.over, two(l.plus, n1, five), n2);
  two(l.over, n1, two(l.minus, golden, two(l.over, two(l.minus, n1, five), n2)));
}

}  // namespace l3c::egraph::math_workload
