#include "layers/l2/methods.h"

namespace l3c::l2 {

const std::vector<Entry>& SampleEntries() {
  static const std::vector<Entry> entries = {
      {"epoch_shuffle",
       {Arg::Integer("batch", 1, int64_t{1} << 24), Arg::Flag("drop_last", false)},
       "every row once an epoch in an order drawn from the seed; the last batch is padded, or "
       "dropped when it is not full"},
  };
  return entries;
}

const std::vector<Entry>& CurriculumEntries() {
  static const std::vector<Entry> entries;
  return entries;
}

int64_t BatchOf(const Form& sample) { return sample.Integer(0); }
bool DropsLast(const Form& sample) { return sample.Bool(1); }

}  // namespace l3c::l2
