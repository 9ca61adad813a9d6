#include "nomad_harvester/scaling/target_service.h"
