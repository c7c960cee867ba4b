(** What each main theorem rests on.  Expected: the axioms of the standard
    library's classical reals, and nothing else. *)

Require Import Fpinq.Plans Fpinq.Instance Fpinq.Sources Fpinq.Mechanisms Fpinq.Compute.

Goal True. idtac "stability_sound". Abort.
Print Assumptions stability_sound.
Goal True. idtac "laplace_distribution". Abort.
Print Assumptions laplace_distribution.
Goal True. idtac "bags_featherweight". Abort.
Print Assumptions bags_featherweight.
Goal True. idtac "bags_featherweight_dp". Abort.
Print Assumptions bags_featherweight_dp.
Goal True. idtac "bags_featherweight_deterministic". Abort.
Print Assumptions bags_featherweight_deterministic.
Goal True. idtac "bags_featherweight_sums_to_one". Abort.
Print Assumptions bags_featherweight_sums_to_one.
Goal True. idtac "bags_joint_dp". Abort.
Print Assumptions bags_joint_dp.
Goal True. idtac "bags_joint_dp_spent". Abort.
Print Assumptions bags_joint_dp_spent.
Goal True. idtac "bags_root_dp". Abort.
Print Assumptions bags_root_dp.
Goal True. idtac "bags_deterministic". Abort.
Print Assumptions bags_deterministic.
Goal True. idtac "bags_sums_to_one". Abort.
Print Assumptions bags_sums_to_one.
Goal True. idtac "parallel_is_partition". Abort.
Print Assumptions parallel_is_partition.
Goal True. idtac "certificate_charge". Abort.
Print Assumptions certificate_charge.
