#include "layers/rules/meaning.h"

#include <algorithm>

namespace l3c::rules {
namespace {

// v, a, b values; d a definition; c, p contexts; k, g kernels and groups; q a version in memory.
constexpr Meaning kKernels[] = {
    // A value that some fact speaks of may be kept; whether it pays is up to the costs.
    {"(stored v)", "", "(reduction v)"},
    {"(stored v)", "", "(contraction v)"},
    {"(stored v)", "", "(indexed v)"},
    {"(stored v)", "", "(reported v)"},
    {"(stored v)", "", "(kept v)"},
    {"(stored v)", "", "(overwritten v)"},
    {"(stored v)", "", "(forked v)"},
    {"(stored v)", "", "(widened v)"},
    {"(stored v)", "", "(unmapped v)"},
    {"(stored v)", "", "(single v)"},
    {"(stored v)", "", "(operand m v)"},
    {"(stored v)", "", "(operand v a)"},
    {"(stored v)", "", "(turned m v)"},
    {"(stored v)", "", "(turned v t)"},

    {"(Load v c (InMem v q))", "(InReg v c)", "(reads v c q)"},
    {"(LoadRow v c (Fetch v k) (InMem v q))", "(InReg v c)", "(reads-row v c k q)"},
    {"(Fetch v k)", "", ""},
    {"(Hoist v c (InReg v k))", "(InReg v c)", "(hoisted v c k)"},
    {"(Leaf d c)", "(InReg v c)", "(inline d c) (leaf d v)"},
    {"(Unary d c (InReg a c))", "(InReg v c)", "(inline d c) (unary d v a)"},
    {"(Binary d c (InReg a c) (InReg b c))", "(InReg v c)", "(inline d c) (binary d v a b)"},
    {"(Ternary d c (InReg a c) (InReg b c) (InReg e c))", "(InReg v c)",
     "(inline d c) (ternary d v a b e)"},
    {"(View d c (InReg a c))", "(InReg v c)", "(inline d c) (view d v a)"},
    {"(Fold d c p (InReg a p))", "(InReg v c)", "(pass d c p) (fold d v a)"},
    {"(Dot d c form (InMem a qa) (InMem b qb))", "(InReg v c)", "(dot d v c form a qa b qb)"},
    {"(Row d c (InMem table q) (InReg index c))", "(InReg v c)",
     "(inline d c) (gather d v table index) (reads table c q)"},
    {"(AddUp d c (InReg a c))", "(InReg v c)", "(added d c) (fold d v a)"},
    {"(Scatter d c (InReg index c) (InReg updates c))", "(InReg v c)",
     "(inline d c) (scatter d v index updates)"},

    {"(Given v)", "(InMem v -1)", "(given v)"},
    {"(Store v k (Run k) (InReg v c))", "(InMem v q)", "(root k v q c)"},
    {"(Beside v k (Run k) (InReg v c))", "(InMem v q)", "(beside k v q c)"},
    {"(Sooner v q (InMem v p))", "(InMem v q)", "(later v q p)"},
    {"(Run k)", "", ""},

    {"(Overwrite g k (Run k) (Rest k 0))", "(Updated g)", "(update g k n)"},
    {"(Write v k (InReg v c) (Rest k (+ i 1)))", "(Rest k i)",
     "(update g k n) (update-step k i v c)"},
    {"(Nothing)", "(Rest k n)", "(update g k n)"},
    {"(Overwrite g k (Run k) (Rest k first))", "(Updated g)", "(update-beside g k first end)"},
    {"(Nothing)", "(Rest k end)", "(update-beside g k first end)"},
    {"(CopyBack g (RestCopied g 0))", "(Updated g)", "(copies g n)"},
    {"(Nothing)", "(RestCopied g n)", "(copies g n)"},
    {"(Copy v (InMem v q) (RestCopied g (+ i 1)))", "(RestCopied g i)",
     "(copies g n) (copy-step g i v q)"},

    // s, p segments: launches, with what runs again before them.
    {"(Forward v)", "(KeptAt v s)", "(made v s)"},
    {"(Save v s (KeptAt v p))", "(KeptAt v s)", "(lasts v s p)"},
    {"(Recompute v s (RunAgain k s))", "(KeptAt v s)", "(repeatable k s n) (makes k v)"},
    {"(Relaunch k s (OperandsFrom k s 0))", "(RunAgain k s)", "(repeatable k s n)"},
    {"(Operand (KeptAt a s) (OperandsFrom k s (+ i 1)))", "(OperandsFrom k s i)",
     "(repeatable k s n) (reads-operand k i a)"},
    {"(NoOperand)", "(OperandsFrom k s n)", "(repeatable k s n)"},
};

constexpr Meaning kPlacement[] = {
    {"(AtRest (Ahead d s (Data)) disk)", "", "(Flight d s) (AtRest (Data) disk)"},
    {"(AtRest v m)", "", "(StateFits m) (= v (Params m))"},
    {"(AtRest v m)", "", "(StateFits m) (= v (State m))"},
    {"(StepAt m (Made (Op2 \"model_state\" (Op2 \"forward_backward\" (Op1 \"load\" "
     "(Ahead d s (Data))) (Params m)) (State m)) m))",
     "(Step)", "(StateFits m) (Flight d s)"},
    {"(AtRest v m)", "", "(Streams f m) (= v (ParamsFrom f m))"},
    {"(AtRest v m)", "", "(Streams f m) (= v (StateFrom f m))"},
    {"(StepFrom f m (Made (Op2 \"model_state\" (Op2 \"forward_backward\" (Op1 \"load\" "
     "(Ahead d s (Data))) (ParamsFrom f m)) (StateFrom f m)) m))",
     "(Step)", "(Streams f m) (Flight d s)"},
    {"(AtRest v p)", "", "(Replicas p) (= v (Params p))"},
    {"(AtRest v p)", "", "(Replicas p) (= v (State p))"},
    {"(StepAt p (Made (Op2 \"model_state\" (Op1 \"all_reduce\" (Op2 \"forward_backward\" "
     "(Op1 \"load\" (Ahead d s (Data))) (Params p))) (State p)) p))",
     "(Step)", "(Replicas p) (Flight d s)"},
    {"(RingSum c (Placed a p))", "(Made (Op1 \"all_reduce\" a) p)",
     "(Ring c p) (Room (Op1 \"all_reduce\" a) p)"},
    {"(Beside (Made v k) what k m)", "(Placed v m)", "(Reads what k m) (= what (Name v))"},
    {"(Here (Made v m))", "(Placed v m)", ""},
    {"(Move (Made v k) what k m)", "(Placed v m)", "(Link k m) (= what (Name v))"},
    {"(Along (Made v k) what k m)", "(Placed v m)",
     "(Link k m) (Adjacent k m) (= v (Op1 op a)) (= what (Name v))"},
    {"(Rest v m)", "(Made v m)", "(AtRest v m)"},
    {"(Run1 op c (Placed a m))", "(Made (Op1 op a) m)",
     "(CanRun op c) (Local c m) (Room (Op1 op a) m)"},
    {"(Run2 op c (Placed a m) (Placed b m))", "(Made (Op2 op a b) m)",
     "(CanRun op c) (Local c m) (Room (Op2 op a b) m)"},
    {"(Rerun2 op c (Placed a m) (Placed b m))", "(Made (Op2 op a b) m)",
     "(CanRun op c) (Local c m) (Tight (Op2 op a b) m)"},
    {"(Pipe2 op c (Cuts c) (Placed a m) (Placed b m))", "(Made (Op2 op a b) m)",
     "(InStages op c) (Local c m) (Room (Op2 op a b) m)"},
    {"(Reached c s)", "", "(Even c s)"},
    {"(Reached c t)", "", "(Reached c s) (Shift s t)"},
    {"(CutAt c s n)", "(Cuts c)", "(Reached c s) (StageFits c s) (Micro n)"},
};

// Kinds of stage are numbered as in rewrites/lower_l3_l2.egg.
constexpr Meaning kMethod[] = {
    {"(Width w)", "", "(PowerOfTwo w) (WidthBound n) (<= w n)"},
    {"(Channels w)", "", "(Width w) (ChannelBound n) (<= w n)"},
    {"(KeepsFirst k 0)", "", "(Kind k)"},
    {"(KeepsFirst k (+ i 1))", "", "(KeepsFirst k i) (Asked i) (Keeps k i)"},
    {"(Legal k)", "", "(KeepsFirst k n) (AskedCount n)"},
    {"(Ends 0 y x c)", "", "(Reads y x c)"},
    {"(Ends 0 t 1 w)", "", "(Tokens t) (Width w)"},
    {"(Ends (+ h 1) u v d)", "", "(Ends h y x c) (Deeper h) (Move y x c k w u v d) (Norm n)"},
    {"(Deeper h)", "", "(Ends h y x c) (DepthBound n) (< (+ h 1) n)"},
    {"(Move y x c 0 w 1 1 w)", "", "(Legal 0) (Ends h y x c) (Deeper h) (Width w)"},
    {"(Move t 1 c 1 w t 1 w)", "", "(Legal 1) (Ends h t 1 c) (Deeper h) (< 1 t) (Width w)"},
    {"(Move t 1 c 2 c t 1 c)", "", "(Legal 2) (Ends h t 1 c) (Deeper h) (< 1 t) (Width c)"},
    {"(Move t 1 c 3 w t 1 w)", "", "(Legal 3) (Ends h t 1 c) (Deeper h) (< 2 t) (Channels w)"},
    {"(Move y x c 4 w (/ y 2) (/ x 2) w)", "",
     "(Legal 4) (Ends h y x c) (Deeper h) (< 3 y) (< 3 x) (Channels w)"},
    {"(Move y x c 5 w y x w)", "",
     "(Legal 5) (Ends h y x c) (Deeper h) (< 2 y) (< 2 x) (Channels w)"},
    {"(Move t 1 c 10 w 1 1 w)", "",
     "(Legal 10) (Ends h t 1 c) (Deeper h) (< 1 t) (<= t 256) (Width w)"},
    {"(Move 1 1 c 11 w 1 1 w)", "", "(Legal 11) (Ends h 1 1 c) (Deeper h) (Width w)"},
    {"(Move t 1 c 12 c t 1 c)", "", "(Legal 12) (Ends h t 1 c) (Deeper h) (Width c)"},

    {"(Input)", "(ChainWanted 0 y x c)", "(Reads y x c)"},
    {"(Embed w)", "(ChainWanted 0 t 1 w)", "(Tokens t) (Width w)"},
    {"(Stage (ChainWanted h y x c) (+ h 1) y x c k w n a)", "(ChainWanted (+ h 1) u v d)",
     "(Ends h y x c) (Deeper h) (Move y x c k w u v d) (!= k 2) (!= k 10) (Norm n) (Activation a)"},
    {"(Stage (ChainWanted h y x c) (+ h 1) y x c 2 w n 0)", "(ChainWanted (+ h 1) u v d)",
     "(Ends h y x c) (Deeper h) (Move y x c 2 w u v d) (Norm n)"},
    {"(Stage (ChainWanted h y x c) (+ h 1) y x c 10 w n 0)", "(ChainWanted (+ h 1) u v d)",
     "(Ends h y x c) (Deeper h) (Move y x c 10 w u v d) (Norm n)"},
    {"(Output (ChainWanted h y x c) h y x c 6)", "(NetworkWanted)",
     "(Ends h y x c) (MayRead 6) (Legal 6)"},
    {"(Output (ChainWanted h y x c) h y x c 9)", "(NetworkWanted)",
     "(Ends h y x c) (MayRead 9) (Legal 9)"},
    {"(Output (ChainWanted h t 1 c) h t 1 c 7)", "(NetworkWanted)",
     "(Ends h t 1 c) (< 1 t) (MayRead 7) (Legal 7)"},
    {"(Output (ChainWanted h y y c) h y y c 7)", "(NetworkWanted)",
     "(Ends h y y c) (< 0 h) (< 1 y) (MayRead 7) (Legal 7)"},
    {"(Output (ChainWanted h y x c) h y x c 8)", "(NetworkWanted)",
     "(Ends h y x c) (Positions y x) (MayRead 8) (Legal 8)"},
    {"(EpochShuffle b)", "(SampleWanted)", "(Batch b)"},
    {"(Step o r)", "(OptimizerWanted)", "(LearningRate o r)"},
    {"(Schedule (OptimizerWanted) w d)", "(UpdateWanted)", "(Warmup w) (Decay d)"},
    {"(NoMoreTerms)", "(LossWanted n)", "(TermCount n)"},
    {"(Term t l (LossWanted (+ t 1)))", "(LossWanted t)", "(Fits t l)"},
    {"(Epochs e)", "(PhasesWanted)", "(EpochCount e)"},
    {"(Train (SampleWanted) (NetworkWanted) (UpdateWanted) (LossWanted 0) (PhasesWanted))",
     "(MethodWanted)", ""},
};

}  // namespace

std::span<const Meaning> Meanings(Lowering lowering) {
  switch (lowering) {
    case Lowering::kKernels:
      return kKernels;
    case Lowering::kPlacement:
      return kPlacement;
    case Lowering::kMethod:
      return kMethod;
  }
  return {};
}

bool IsFree(Lowering lowering, std::string_view relation) {
  if (lowering != Lowering::kPlacement) return false;
  return relation == "Want" || relation == "WantMade" || relation == "Name";
}

}  // namespace l3c::rules
