#pragma once

#include "atoll/result.h"
