// Functions of programs whose settings are more than a table of names. The tables are the files
// *.txt of this folder; frameworks/launch/facts.h describes them.
#pragma once

#include "frameworks/launch/programs.h"

namespace tpsim {

ExpandProgram expand_primus;
ExpandProgram expand_tune;
ExpandProgram expand_flagscale;
ExpandProgram expand_aws;
ExpandProgram expand_chat;
DeriveProgram derive_verl_fsdp;
DeriveProgram derive_verl_megatron;
DeriveProgram derive_verl_sft;
DeriveProgram derive_swift;
DeriveProgram derive_swift_megatron;
DeriveProgram derive_openrlhf;
DeriveProgram derive_slime;
DeriveProgram derive_primus;
DeriveProgram derive_neox;
DeriveProgram derive_tune;
DeriveProgram derive_mlperf;
DeriveProgram derive_factory;
DeriveProgram derive_titan;
DeriveProgram derive_flagscale;
DeriveProgram derive_chat;
DeriveProgram derive_automodel;
DeriveProgram derive_litgpt;
DeriveProgram derive_nemo_rl;
FinishProgram finish_neox;

}  // namespace tpsim
