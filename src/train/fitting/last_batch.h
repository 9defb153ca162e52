// Check for a last batch of one sample, on which some networks (batch norm) cannot be trained.
#pragma once

#include <tenon/data.h>
#include <tenon/nn.h>

namespace tenon::train {

/// Throws ValueError if a batch of an epoch has one sample and the network can be trained on two
/// samples but not on one, such as batch norm after flattened inputs. Computes nothing.
void require_trains_on_last_batch(const nn::AnyModule& net, const data::Loader& train);

}  // namespace tenon::train
