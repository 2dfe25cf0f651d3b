/* SPDX-License-Identifier: Apache-2.0 */
/* mig_table.c - the geometries of NVIDIA's GPUs.
 *
 * From the MIG user guide and from what nvidia-smi mig -lgip and -lgipp print.  All
 * GPUs with seven compute slices have the same places; they differ in memory and SMs.
 * Memory of B200 and GB200 above 2g is the nominal size less one part in a hundred.
 */
#include "engine/mig.h"

#include "base/attr.h"

#include <string.h>
#include <strings.h>

#define STARTS(from, to) (((2U << (to)) - 1) & ~((1U << (from)) - 1))

#define PROFILE(label, number, slices, cores, where, most, me, sms, mib)                  \
	{                                                                                 \
		.name = label, .id = (number), .size = (slices), .compute = (cores),      \
		.starts = (where), .max_count = (most), .media = (me), .sm_count = (sms), \
		.mem_mib = (mib)                                                          \
	}

/* The seven-slice profiles, largest first; "wide" is 1g with the memory of 2g. */
#define SEVEN(label, sms, mib) PROFILE(label, 0, 8, 7, 0x01, 1, false, sms, mib)
#define FOUR(label, sms, mib)  PROFILE(label, 5, 4, 4, 0x01, 1, false, sms, mib)
#define THREE(label, sms, mib) PROFILE(label, 9, 4, 3, 0x11, 2, false, sms, mib)
#define TWO(label, sms, mib)   PROFILE(label, 14, 2, 2, 0x15, 3, false, sms, mib)
#define WIDE(label, sms, mib)  PROFILE(label, 15, 2, 1, 0x55, 4, false, sms, mib)
#define ONE(label, sms, mib)   PROFILE(label, 19, 1, 1, STARTS(0, 6), 7, false, sms, mib)
#define MEDIA(label, sms, mib) PROFILE(label, 20, 1, 1, STARTS(0, 6), 1, true, sms, mib)

static const struct mig_profile a30_24gb[] = {
	PROFILE("4g.24gb", 0, 4, 4, 0x01, 1, false, 56, 24003),
	PROFILE("2g.12gb", 5, 2, 2, 0x05, 2, false, 28, 11971),
	PROFILE("2g.12gb+me", 6, 2, 2, 0x05, 1, true, 28, 11971),
	PROFILE("1g.6gb", 14, 1, 1, STARTS(0, 3), 4, false, 14, 5949),
	PROFILE("1g.6gb+me", 21, 1, 1, STARTS(0, 3), 1, true, 14, 5949),
};

static const struct mig_profile a100_40gb[] = {
	SEVEN("7g.40gb", 98, 40192),  FOUR("4g.20gb", 56, 19968), THREE("3g.20gb", 42, 19968),
	TWO("2g.10gb", 28, 9856),     WIDE("1g.10gb", 14, 9856),  ONE("1g.5gb", 14, 4864),
	MEDIA("1g.5gb+me", 14, 4864),
};

static const struct mig_profile a100_80gb[] = {
	SEVEN("7g.80gb", 98, 80896),   FOUR("4g.40gb", 56, 40192), THREE("3g.40gb", 42, 40192),
	TWO("2g.20gb", 28, 19968),     WIDE("1g.20gb", 14, 19968), ONE("1g.10gb", 14, 9728),
	MEDIA("1g.10gb+me", 14, 9728),
};

static const struct mig_profile h100_80gb[] = {
	SEVEN("7g.80gb", 132, 81152),  FOUR("4g.40gb", 64, 40448), THREE("3g.40gb", 60, 40448),
	TWO("2g.20gb", 32, 20096),     WIDE("1g.20gb", 26, 20096), ONE("1g.10gb", 16, 9984),
	MEDIA("1g.10gb+me", 16, 9984),
};

static const struct mig_profile h100_94gb[] = {
	SEVEN("7g.94gb", 132, 95360),	FOUR("4g.47gb", 64, 47488), THREE("3g.47gb", 60, 47488),
	TWO("2g.24gb", 32, 22144),	WIDE("1g.24gb", 26, 22144), ONE("1g.12gb", 16, 11008),
	MEDIA("1g.12gb+me", 16, 11008),
};

static const struct mig_profile h200_141gb[] = {
	SEVEN("7g.141gb", 132, 143360), FOUR("4g.71gb", 64, 71168), THREE("3g.71gb", 60, 71168),
	TWO("2g.35gb", 32, 33024),	WIDE("1g.35gb", 26, 33024), ONE("1g.18gb", 16, 16384),
	MEDIA("1g.18gb+me", 16, 16384),
};

static const struct mig_profile b200_180gb[] = {
	SEVEN("7g.180gb", 148, 182476), FOUR("4g.90gb", 72, 91238), THREE("3g.90gb", 70, 91238),
	TWO("2g.45gb", 36, 45312),	WIDE("1g.45gb", 30, 45312), ONE("1g.23gb", 18, 20992),
	MEDIA("1g.23gb+me", 18, 20992),
};

static const struct mig_profile gb200_186gb[] = {
	SEVEN("7g.186gb", 152, 188559), FOUR("4g.93gb", 72, 94279), THREE("3g.93gb", 70, 94279),
	TWO("2g.47gb", 36, 46848),	WIDE("1g.47gb", 30, 46848), ONE("1g.23gb", 18, 21760),
	MEDIA("1g.23gb+me", 18, 21760),
};

#define GEOMETRY(symbol, label, memory_slices, compute_slices)                                 \
	const struct mig_geometry mig_##symbol = { (label), (memory_slices), (compute_slices), \
						   ARRAY_SIZE(symbol), (symbol) }

GEOMETRY(a30_24gb, "a30-24gb", 4, 4);
GEOMETRY(a100_40gb, "a100-40gb", 8, 7);
GEOMETRY(a100_80gb, "a100-80gb", 8, 7);
GEOMETRY(h100_80gb, "h100-80gb", 8, 7);
GEOMETRY(h100_94gb, "h100-94gb", 8, 7);
GEOMETRY(h200_141gb, "h200-141gb", 8, 7);
GEOMETRY(b200_180gb, "b200-180gb", 8, 7);
GEOMETRY(gb200_186gb, "gb200-186gb", 8, 7);

static const struct mig_geometry *const geometries[] = {
	&mig_a30_24gb,	&mig_a100_40gb,	 &mig_a100_80gb,  &mig_h100_80gb,
	&mig_h100_94gb, &mig_h200_141gb, &mig_b200_180gb, &mig_gb200_186gb,
};

static const struct {
	const char *model;
	const struct mig_geometry *geometry;
} models[] = {
	{ "NVIDIA-A30", &mig_a30_24gb },
	{ "NVIDIA-A100-SXM4-40GB", &mig_a100_40gb },
	{ "NVIDIA-A100-PCIE-40GB", &mig_a100_40gb },
	{ "NVIDIA-A100-SXM4-80GB", &mig_a100_80gb },
	{ "NVIDIA-A100-80GB-PCIe", &mig_a100_80gb },
	{ "NVIDIA-A800-SXM4-80GB", &mig_a100_80gb },
	{ "NVIDIA-A800-80GB-PCIe", &mig_a100_80gb },
	{ "NVIDIA-H100-80GB-HBM3", &mig_h100_80gb },
	{ "NVIDIA-H100-PCIe", &mig_h100_80gb },
	{ "NVIDIA-H800", &mig_h100_80gb },
	{ "NVIDIA-H800-PCIe", &mig_h100_80gb },
	{ "NVIDIA-H100-NVL", &mig_h100_94gb },
	{ "NVIDIA-H200", &mig_h200_141gb },
	{ "NVIDIA-H200-NVL", &mig_h200_141gb },
	{ "NVIDIA-B200", &mig_b200_180gb },
	{ "NVIDIA-GB200", &mig_gb200_186gb },
};

const struct mig_geometry *mig_geometry_at(size_t i)
{
	return i < ARRAY_SIZE(geometries) ? geometries[i] : NULL;
}

/* GPU Feature Discovery says behind the model how the card is cut up. */
static bool is_model(const char *name, const char *model)
{
	size_t len = strlen(model);

	if (strncasecmp(name, model, len) != 0)
		return false;
	return !name[len] || strcasecmp(name + len, "-SHARED") == 0 ||
	       strncasecmp(name + len, "-MIG-", 5) == 0;
}

const struct mig_geometry *mig_geometry_of_model(const char *model)
{
	for (size_t i = 0; i < ARRAY_SIZE(models); i++)
		if (is_model(model, models[i].model))
			return models[i].geometry;
	return NULL;
}
