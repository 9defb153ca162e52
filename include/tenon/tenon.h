// Everything a program needs.
#pragma once

#include <tenon/data.h>
#include <tenon/device.h>
#include <tenon/dtype.h>
#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/functional.h>
#include <tenon/grad.h>
#include <tenon/io.h>
#include <tenon/loops.h>
#include <tenon/metrics.h>
#include <tenon/models.h>
#include <tenon/nn.h>
#include <tenon/ops.h>
#include <tenon/optim.h>
#include <tenon/pictures.h>
#include <tenon/recurrent.h>
#include <tenon/shape.h>
#include <tenon/shapes_only.h>
#include <tenon/system.h>
#include <tenon/tensor.h>
#include <tenon/text.h>
#include <tenon/tokenizer.h>
#include <tenon/train.h>
#include <tenon/transformer.h>
#include <tenon/weights.h>
