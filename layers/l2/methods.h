// Ways to sample. Their meaning is a matter of L1 (a sampling stage); here they are forms with
// checks.
#pragma once

#include <string_view>
#include <vector>

#include "layers/l2/form.h"

namespace l3c::l2 {

const std::vector<Entry>& SampleEntries();  // epoch_shuffle(batch, drop_last)
const std::vector<Entry>& CurriculumEntries();

// Rows of one step.
int64_t BatchOf(const Form& sample);
bool DropsLast(const Form& sample);

}  // namespace l3c::l2
