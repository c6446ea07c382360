// ridge: the program.
//
// From here: cli/command_line.cc picks the verb; cli/train.cc is the start of a training.
#include "ridge/cli/command_line.h"

int main(int argc, char** argv) { return ridge::cli::RunCommandLine(argc, argv); }
