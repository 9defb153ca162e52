// The check builds forward pass and loss for a batch of the part and discards them.
#include "train/fitting/part_fits.h"

#include <algorithm>
#include <string>
#include <vector>

#include <tenon/error.h>

#include "base/str.h"

namespace tenon::train {
namespace {

// A class must have the same number in all parts, or metrics would compare different classes.
void require_same_classes(const data::Dataset& train, const data::Dataset& other,
                          const std::string& part) {
  if (!train.text_unit().empty()) return;
  const std::vector<std::string> known = train.class_names(), given = other.class_names();
  for (std::size_t c = 0; c < std::min(known.size(), given.size()); ++c)
    if (known[c] != given[c])
      throw ValueError(cat("Trainer: class ", c, " is '", known[c], "' in the training part and '",
                           given[c], "' in the ", part,
                           " part: open both with the same class names (CsvOptions::class_names, "
                           "CsvOptions::columns)"));
}

std::string samples_text(const data::Loader& loader) {
  const data::Dataset& set = loader.dataset();
  return cat(loader.input_dtype(), " ", loader.input_shape(), " with targets ", set.target_dtype(),
             " ", set.target_shape(),
             set.classes() > 0 ? cat(" of ", set.classes(), " classes") : std::string());
}

}  // namespace

void require_part_fits(EvalStep& step, const data::Loader& train, const data::Loader& other,
                       data::Split part) {
  const std::string name = data::name(part);
  require_same_classes(train.dataset(), other.dataset(), name);
  const auto told = [&](const std::string& why) {
    return cat("Trainer: the ", name, " part does not fit: its samples are ", samples_text(other),
               ", those of the training part ", samples_text(train), ": ", why);
  };
  if (other.input_dtype() != train.input_dtype())
    throw DTypeError(told("inputs of both must have the same dtype"));
  // If training samples fail too, the part is not the cause: the first step reports the error.
  // The two messages may differ, because the batch sizes do.
  const auto fails_too = [&] {
    try {
      step.require_fits(train);
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  try {
    step.require_fits(other);
  } catch (const ShapeError& error) {
    if (!fails_too()) throw ShapeError(told(error.what()));
  } catch (const DTypeError& error) {
    if (!fails_too()) throw DTypeError(told(error.what()));
  } catch (const ValueError& error) {
    if (!fails_too()) throw ValueError(told(error.what()));
  }
}

}  // namespace tenon::train
