// Training: includes the headers about the Trainer, runs and trained models.
#pragma once

#include <tenon/runs.h>
#include <tenon/train_reports.h>
#include <tenon/trained_model.h>
#include <tenon/trainer.h>
