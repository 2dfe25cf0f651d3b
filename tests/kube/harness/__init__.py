# SPDX-License-Identifier: Apache-2.0
"""What tests/kube/cluster and the tests of tests/kube/e2e are made of."""
