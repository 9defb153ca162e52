// Everything a program needs.
#pragma once

#include <tenon/device.h>
#include <tenon/dtype.h>
#include <tenon/error.h>
#include <tenon/eval.h>
#include <tenon/grad.h>
#include <tenon/ops.h>
#include <tenon/shape.h>
#include <tenon/tensor.h>
