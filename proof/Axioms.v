(** What each main theorem rests on.  The Makefile checks that nothing is listed
    beyond the axioms of the standard library's classical reals. *)

Require Import Fpinq.Join Fpinq.Seen Fpinq.Plans Fpinq.Persons Fpinq.Mechanisms Fpinq.PermuteAndFlip Fpinq.Monotone Fpinq.Queries Fpinq.Sources Fpinq.Shown Fpinq.Sessions Fpinq.Refines Fpinq.Instance
  Fpinq.Closeness Fpinq.Hyperbolic Fpinq.Moments Fpinq.Gaussian Fpinq.Choosing Fpinq.Books Fpinq.AtRho Fpinq.Several Fpinq.Approximate Fpinq.Discovery Fpinq.Concentrated
  Fpinq.Compute.
Require Fpinq.ComputeBooks Fpinq.SharedBooks Fpinq.Postprocessing.

Goal True. idtac "theorem stability_sound". Abort.
Print Assumptions stability_sound.
Goal True. idtac "theorem join_law". Abort.
Print Assumptions join_law.
Goal True. idtac "theorem limit_copies_stable". Abort.
Print Assumptions limit_copies_stable.
Goal True. idtac "theorem persons_stable". Abort.
Print Assumptions persons_stable.
Goal True. idtac "theorem laplace_distribution". Abort.
Print Assumptions laplace_distribution.
Goal True. idtac "theorem noise_private". Abort.
Print Assumptions noise_private.
Goal True. idtac "theorem choose_private". Abort.
Print Assumptions choose_private.
Goal True. idtac "theorem permute_and_flip_private". Abort.
Print Assumptions permute_and_flip_private.
Goal True. idtac "theorem permute_and_flip_monotone". Abort.
Print Assumptions permute_and_flip_monotone.
Goal True. idtac "theorem released_private". Abort.
Print Assumptions released_private.
Goal True. idtac "theorem charge_potential". Abort.
Print Assumptions charge_potential.
Goal True. idtac "theorem certificate_charge". Abort.
Print Assumptions certificate_charge.
Goal True. idtac "theorem parallel_is_partition". Abort.
Print Assumptions parallel_is_partition.
Goal True. idtac "theorem factor_shown_integer". Abort.
Print Assumptions factor_shown_integer.
Goal True. idtac "theorem factor_shown_true". Abort.
Print Assumptions factor_shown_true.
Goal True. idtac "theorem refines". Abort.
Print Assumptions refines.
Goal True. idtac "theorem only_the_papers_traces". Abort.
Print Assumptions only_the_papers_traces.
Goal True. idtac "theorem bags_featherweight". Abort.
Print Assumptions bags_featherweight.
Goal True. idtac "theorem bags_featherweight_dp". Abort.
Print Assumptions bags_featherweight_dp.
Goal True. idtac "theorem bags_featherweight_event_dp". Abort.
Print Assumptions bags_featherweight_event_dp.
Goal True. idtac "theorem bags_featherweight_deterministic". Abort.
Print Assumptions bags_featherweight_deterministic.
Goal True. idtac "theorem bags_featherweight_sums_to_one". Abort.
Print Assumptions bags_featherweight_sums_to_one.
Goal True. idtac "theorem bags_joint_dp". Abort.
Print Assumptions bags_joint_dp.
Goal True. idtac "theorem bags_joint_dp_spent". Abort.
Print Assumptions bags_joint_dp_spent.
Goal True. idtac "theorem bags_root_dp". Abort.
Print Assumptions bags_root_dp.
Goal True. idtac "theorem bags_event_dp". Abort.
Print Assumptions bags_event_dp.
Goal True. idtac "theorem bags_random_dp". Abort.
Print Assumptions bags_random_dp.
Goal True. idtac "theorem bags_sessions_dp". Abort.
Print Assumptions bags_sessions_dp.
Goal True. idtac "theorem bags_sessions_event_dp". Abort.
Print Assumptions bags_sessions_event_dp.
Goal True. idtac "theorem caps_hold". Abort.
Print Assumptions caps_hold.
Goal True. idtac "theorem bags_deterministic". Abort.
Print Assumptions bags_deterministic.
Goal True. idtac "theorem bags_sums_to_one". Abort.
Print Assumptions bags_sums_to_one.
Goal True. idtac "theorem convert". Abort.
Print Assumptions convert.
Goal True. idtac "theorem tanh_above_right". Abort.
Print Assumptions tanh_above_right.
Goal True. idtac "theorem private_close". Abort.
Print Assumptions private_close.
Goal True. idtac "theorem range_close". Abort.
Print Assumptions range_close.
Goal True. idtac "theorem gaussian_distribution". Abort.
Print Assumptions gaussian_distribution.
Goal True. idtac "theorem gaussians_close". Abort.
Print Assumptions gaussians_close.
Goal True. idtac "theorem measure_l2". Abort.
Print Assumptions measure_l2.
Goal True. idtac "theorem choose_close". Abort.
Print Assumptions choose_close.
Goal True. idtac "theorem at_rho". Abort.
Print Assumptions at_rho.
Goal True. idtac "theorem several_private". Abort.
Print Assumptions several_private.
Goal True. idtac "theorem several_at_rho". Abort.
Print Assumptions several_at_rho.
Goal True. idtac "theorem image_close". Abort.
Print Assumptions Postprocessing.image_close.
Goal True. idtac "theorem nearly_pure". Abort.
Print Assumptions nearly_pure.
Goal True. idtac "theorem nearly_converted". Abort.
Print Assumptions nearly_converted.
Goal True. idtac "theorem stable_below". Abort.
Print Assumptions stable_below.
Goal True. idtac "theorem laplace_core_close". Abort.
Print Assumptions laplace_core_close.
Goal True. idtac "theorem gaussian_core_close". Abort.
Print Assumptions gaussian_core_close.
Goal True. idtac "theorem sparse". Abort.
Print Assumptions sparse.
Goal True. idtac "theorem sparse_at_rho". Abort.
Print Assumptions sparse_at_rho.
Goal True. idtac "theorem books_nearly". Abort.
Print Assumptions books_nearly.
Goal True. idtac "theorem books_alike". Abort.
Print Assumptions books_alike.
Goal True. idtac "theorem books_within". Abort.
Print Assumptions books_within.
Goal True. idtac "theorem bags_nearly". Abort.
Print Assumptions bags_nearly.
Goal True. idtac "theorem bags_keys_dp". Abort.
Print Assumptions bags_keys_dp.
Goal True. idtac "theorem bags_concentrated_spent". Abort.
Print Assumptions bags_concentrated_spent.
Goal True. idtac "theorem bags_concentrated". Abort.
Print Assumptions bags_concentrated.
Goal True. idtac "theorem bags_concentrated_dp". Abort.
Print Assumptions bags_concentrated_dp.
Goal True. idtac "theorem bags_sessions_nearly". Abort.
Print Assumptions bags_sessions_nearly.
Goal True. idtac "theorem bags_sessions_keys_random_dp". Abort.
Print Assumptions bags_sessions_keys_random_dp.
Goal True. idtac "theorem bags_sessions_concentrated". Abort.
Print Assumptions bags_sessions_concentrated.
Goal True. idtac "theorem bags_sessions_concentrated_dp". Abort.
Print Assumptions bags_sessions_concentrated_dp.
Goal True. idtac "theorem bags_sessions_concentrated_random_dp". Abort.
Print Assumptions bags_sessions_concentrated_random_dp.
Goal True. idtac "theorem caps_hold_in_books". Abort.
Print Assumptions SharedBooks.caps_hold_in_books.
Goal True. idtac "theorem bags_pure_beside". Abort.
Print Assumptions bags_pure_beside.
Goal True. idtac "theorem bags_books_sum_to_one". Abort.
Print Assumptions bags_books_sum_to_one.
Goal True. idtac "theorem step_agrees". Abort.
Print Assumptions step_agrees.
Goal True. idtac "theorem books_step_agrees". Abort.
Print Assumptions ComputeBooks.books_step_agrees.
Goal True. idtac "theorem safe_q_right". Abort.
Print Assumptions ComputeBooks.safe_q_right.
