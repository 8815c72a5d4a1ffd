#pragma once

#include "atoll/error.h"
