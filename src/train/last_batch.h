// Check for a last batch of one sample, on which some networks (batch norm) cannot be trained.
#pragma once

#include <tenon/data.h>
#include <tenon/nn.h>

namespace tenon::train {

/// Throws ValueError where a batch of an epoch has one sample and the network can train on two but
/// not on one, as with batch normalization behind flattened inputs. Computes nothing.
void require_trains_on_last_batch(const nn::AnyModule& net, const data::Loader& train);

}  // namespace tenon::train
