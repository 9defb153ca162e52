// Layers of the 1998 LeNet-5, for network files.
#pragma once

#include "models/file_layer.h"

namespace tenon::models {

FileLayer lenet_convolution_layer(LayerKeys& keys, const LayerContext& at);
FileLayer lenet_subsampling_layer(LayerKeys& keys, const LayerContext& at);
FileLayer lenet_partial_convolution_layer(LayerKeys& keys, const LayerContext& at);
FileLayer lenet_hidden_layer(LayerKeys& keys, const LayerContext& at);
FileLayer lenet_drawings_layer(LayerKeys& keys, const LayerContext& at);

}  // namespace tenon::models
