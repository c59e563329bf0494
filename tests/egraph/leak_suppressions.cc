// COIN-OR's libraries, as packaged, lose a few cuts of every branch-and-cut run. The leak checker
// must still see ours.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:OsiRowCut\nleak:CoinPackedVector\n";
}
