// Functions of programs whose settings are more than a table of names. The tables are the files
// *.txt of this folder; frameworks/launch/facts.h describes them.
#pragma once

#include "frameworks/launch/programs.h"

namespace tpsim {

ExpandProgram expand_primus;
ExpandProgram expand_tune;
ExpandProgram expand_flagscale;
ExpandProgram expand_aws;
DeriveProgram derive_titan;

}  // namespace tpsim
