// The subcommands, one file each. Creating a Command only builds its table; Command::run does the
// work.
#pragma once

#include <vector>

#include "args.h"

namespace tenon::cli {

/// Data sources, for the help of --data and SPEC.
inline constexpr char kDataSpecHelp[] =
    "data source: digits[:TRAIN,TEST,SEED], scenes[:TRAIN,TEST,SEED], random[:TRAIN,TEST], "
    "mnist[:DIR], cifar10[:DIR], cifar100[:DIR], idx:DIR, csv:FILE[,label=NAME...], npy:X,Y, "
    "text:FILE[,by=UNIT], lines:FILE, numbers[:TRAIN,TEST], pairs:FILE, spans:FILE, folder:DIR, "
    "list:FILE or shards:PATTERN";
/// Networks and runs, for the help of MODEL.
inline constexpr char kModelHelp[] =
    "network (lenet5, resnet56, mlp:784-300-10; 'tenon models' lists all), network file "
    "(net.toml), run folder or model.safetensors";

Command train_command();
Command eval_command();
Command predict_command();
Command generate_command();
Command models_command();
Command summary_command();
Command inspect_command();
Command verify_command();
Command export_command();
Command bench_command();
Command data_command();
Command weights_command();
Command tokenizer_command();
Command new_command();
Command data_fetch_command();
Command doctor_command();
Command completion_command();

/// All commands, in the order of the overview.
std::vector<Command> all_commands();

}  // namespace tenon::cli
