// `ridge plan --history`: what earlier runs were planned to take and took.
#pragma once
#include "ridge/core/status.h"
#include "ridge/report/terminal.h"

namespace ridge::cli {

// Prints the receipts of this machine, the newest last, and by what the next plans would be scaled;
// with `json` one object.  Fails as LoadReceipts().
Status PrintHistory(bool json, const Terminal& terminal);

}  // namespace ridge::cli
