(** * Several queries at once

    [model/queries.py: Several] in Coq: several queries of the same table, each at
    its share of ε or of ρ, its weight among all of them.  What is released are the
    integers of one after the other; how many each releases is public, so that they
    can be told apart.  It is private as each is at its share, because the shares
    add up to 1. *)

Require Import Reals Lra Lia List Arith ZArith.
Require Import Fpinq.Bags Fpinq.Probability Fpinq.Private Fpinq.Queries Fpinq.Closeness Fpinq.AtRho.
Import ListNotations.
Open Scope R_scope.

(** ** One vector from several *)

Fixpoint pieces (ns : list nat) (vs : list Z) : option (list (list Z)) :=
  match ns with
  | [] => match vs with [] => Some [] | _ => None end
  | n :: ns => if length vs <? n then None else option_map (cons (firstn n vs)) (pieces ns (skipn n vs))
  end%nat.

Lemma pieces_concat ns : forall vs l, pieces ns vs = Some l -> vs = concat l.
Proof.
  induction ns as [|n ns IH]; intros vs l; simpl; [destruct vs; intros E; [injection E as <-; reflexivity|discriminate]|].
  destruct (Nat.ltb_spec (length vs) n); [discriminate|]. destruct (pieces ns (skipn n vs)) as [k|] eqn:E; [|discriminate].
  intros K. injection K as <-. simpl. rewrite <- (IH _ _ E), firstn_skipn. reflexivity.
Qed.

Lemma concat_pieces ns : forall l, Forall2 (fun n v => length v = n) ns l -> pieces ns (concat l) = Some l.
Proof.
  induction 1 as [|n v ns l E H IH]; simpl; [reflexivity|]. subst n. rewrite app_length.
  destruct (Nat.ltb_spec (length v + length (concat l)) (length v)); [lia|].
  rewrite firstn_app, firstn_all, Nat.sub_diag, firstn_O, app_nil_r, skipn_app, skipn_all, Nat.sub_diag. simpl.
  rewrite IH. reflexivity.
Qed.

Definition in_one (ns : list nat) (laws : list (list Z -> R)) (vs : list Z) : R :=
  match pieces ns vs with Some l => independent laws l | None => 0 end.

Lemma in_one_distribution ns laws : Forall distribution laws ->
  Forall2 (fun n (p : list Z -> R) => forall v, length v <> n -> p v = 0) ns laws -> distribution (in_one ns laws).
Proof.
  intros D L. apply (distribution_rename_possible (independent laws) (@concat Z) (pieces ns)).
  - apply pieces_concat.
  - intros l Hl. apply concat_pieces. clear D. revert l Hl.
    induction L as [|n p ns laws Hp L IH]; intros [|v l] Hl; simpl in Hl; try (exfalso; apply Hl; reflexivity); constructor.
    + destruct (Nat.eq_dec (length v) n); auto. exfalso. apply Hl. rewrite Hp by assumption. ring.
    + apply IH. intros E. apply Hl. rewrite E. ring.
  - apply (independent_distribution (list_eq_dec Z.eq_dec)), D.
Qed.

(** ** Shares *)

Section Several.
  Context {record : Type} {O : Ordered record}.
  Notation table := (list record).
  Notation query := (query (record := record)).

  Definition weights (qs : list (query * positive)) : R := sum (fun q => IZR (Z.pos (snd q))) qs.
  Definition share (qs : list (query * positive)) (e : R) (q : query * positive) : R := e * IZR (Z.pos (snd q)) / weights qs.

  Lemma weights_pos qs : qs <> [] -> 0 < weights qs.
  Proof.
    destruct qs as [|q qs]; [congruence|]. intros _. unfold weights. simpl.
    assert (0 < IZR (Z.pos (snd q))) by (apply IZR_lt; lia).
    assert (0 <= sum (fun q => IZR (Z.pos (snd q))) qs) by (apply sum_nonneg; intros; apply IZR_le; lia). lra.
  Qed.

  Lemma share_pos qs e q : 0 < e -> In q qs -> 0 < share qs e q.
  Proof.
    intros He Hq. assert (qs <> []) by (intros ->; destruct Hq). pose proof (weights_pos qs H).
    apply Rdiv_lt_0_compat; auto. apply Rmult_lt_0_compat; auto. apply IZR_lt. lia.
  Qed.

  (** They add up to e; nothing is asked if there are none. *)
  Lemma shares_sum qs e : 0 <= e -> sum (share qs e) qs <= e.
  Proof.
    intros He. destruct qs as [|q qs]; [simpl; lra|]. pose proof (weights_pos (q :: qs) ltac:(discriminate)) as W.
    set (all := q :: qs) in *. apply Req_le.
    transitivity (sum (fun q => e / weights all * IZR (Z.pos (snd q))) all).
    - apply sum_ext. intros r _. unfold share. field. lra.
    - rewrite sum_scale. fold (weights all). field. lra.
  Qed.

  Section Laws.
    Variables (answers : query -> R -> table -> list Z -> R).
    Hypothesis answers_distribution : forall q e T, 0 < e -> distribution (answers q e T).
    Hypothesis answers_same : forall q e T U v, distance T U = 0%nat -> answers q e T v = answers q e U v.
    Hypothesis answers_length : forall q e T v, length v <> integers q -> answers q e T v = 0.

    Definition all_answers (qs : list (query * positive)) (e : R) (T : table) : list Z -> R :=
      in_one (map (fun q => integers (fst q)) qs) (map (fun q => answers (fst q) (share qs e q) T) qs).

    Lemma all_distribution qs e T : 0 < e -> distribution (all_answers qs e T).
    Proof.
      intros He. apply in_one_distribution.
      - apply Forall_forall. intros p Hp. apply in_map_iff in Hp. destruct Hp as (q & <- & Hq).
        apply answers_distribution, share_pos; assumption.
      - generalize (share qs e). intros f. induction qs as [|q l IH]; simpl; constructor; auto.
    Qed.

    Lemma all_same qs e T U v : distance T U = 0%nat -> all_answers qs e T v = all_answers qs e U v.
    Proof.
      intros H. unfold all_answers, in_one. destruct (pieces _ v) as [l|]; auto. revert l. generalize (share qs e). intros f.
      induction qs as [|q qs IH]; intros [|w l]; simpl; auto. rewrite (answers_same _ _ T U w H), IH. reflexivity.
    Qed.

    Lemma all_close o qs e T U (loss : R -> R) : proper o -> 0 < e -> (forall s, 0 < s -> 0 <= loss s) ->
      (forall q s, 0 < s -> close o (fun _ => loss s) (answers q s T) (answers q s U)) ->
      close o (fun _ => sum (fun q => loss (share qs e q)) qs) (all_answers qs e T) (all_answers qs e U).
    Proof.
      intros Ho He Hl H. unfold all_answers.
      apply (close_rename o Ho (@concat Z) (pieces _) _ (independent _) (independent _) (pieces_concat _)).
      apply (independent_close o (list_eq_dec Z.eq_dec) (fun q => loss (share qs e q))
        (fun q => answers (fst q) (share qs e q) T) (fun q => answers (fst q) (share qs e q) U)); auto.
      intros q Hq. pose proof (share_pos qs e q He Hq). auto.
    Qed.
  End Laws.

  (** ** At ε *)

  Definition several (qs : list (query * positive)) : Mechanism (record := record) (list Z).
  Proof.
    refine {| mass := all_answers (fun q => mass _ (released q)) qs |}.
    - intros e T. apply all_distribution; [intros; apply mass_distribution; assumption|apply released_length].
    - intros e T U v. apply all_same. intros. apply mass_same. assumption.
    - intros e T U v He H.
      assert (C : close Worst (fun _ => sum (share qs e) qs) (all_answers (fun q => mass _ (released q)) qs e T)
        (all_answers (fun q => mass _ (released q)) qs e U)).
      { apply (all_close (fun q => mass _ (released q)) (fun q s T => mass_distribution _ (released q) s T) Worst qs e T U
          (fun s => s) I He); [intros; lra|]. intros q s Hs w. apply mass_private; assumption. }
      eapply Rle_trans; [apply (C v)|]. apply Rmult_le_compat_l.
      + apply (all_distribution (fun q => mass _ (released q)));
          [intros; apply mass_distribution; assumption|apply released_length|exact He].
      + apply exp_mono, shares_sum. lra.
  Defined.

  (** Each is asked at its share of ε. *)
  Lemma several_shares q r w u e T v x : length v = integers q -> length x = integers r ->
    mass _ (several [(q, w); (r, u)]) e T (v ++ x) =
      mass _ (released q) (e * IZR (Z.pos w) / (IZR (Z.pos w) + IZR (Z.pos u))) T v *
      mass _ (released r) (e * IZR (Z.pos u) / (IZR (Z.pos w) + IZR (Z.pos u))) T x.
  Proof.
    intros Hv Hx. cbn [several mass]. unfold all_answers, in_one.
    replace (v ++ x) with (concat [v; x]) by (simpl; rewrite app_nil_r; reflexivity). cbn [map fst].
    rewrite concat_pieces by (repeat constructor; assumption). cbn [independent]. unfold share, weights. cbn [sum snd].
    rewrite Rplus_0_r. ring.
  Qed.

  (** ** At ρ *)

  Section AtRho.
    Variable eta : R -> R.
    Hypothesis eta_pos : forall e, 0 < e -> 0 < eta e.
    Hypothesis eta_below : forall e, 0 < e -> eta e ^ 2 <= 8 * e.
    Notation at_rho := (at_rho (record := record) eta eta_pos eta_below).

    Lemma independent_length {A} (laws : list (A -> R)) : forall vs, length vs <> length laws -> independent laws vs = 0.
    Proof.
      induction laws as [|p laws IH]; intros [|v vs] H; simpl in *; try congruence; auto. rewrite IH by congruence. ring.
    Qed.

    Lemma gaussians_length g H qs : forall vs, length vs <> length qs -> Gaussian.gaussians g H qs vs = 0.
    Proof.
      induction qs as [|q qs IH]; intros [|v vs] L; simpl in *; try congruence; auto. rewrite IH by congruence. ring.
    Qed.

    Lemma gaussian_sums_length gs d B e T vs : length vs <> length gs ->
      rho_mass _ (gaussian_sums (record := record) gs d B) e T vs = 0.
    Proof.
      intros H. destruct d as [|p|p]; simpl.
      - unfold certain. destruct (list_eq_dec Z.eq_dec (Mechanisms.measure gs T) vs) as [<-|]; auto.
        exfalso. apply H. unfold Mechanisms.measure. apply map_length.
      - unfold gaussian_at. destruct (Rlt_dec 0 (rate e p)); auto. apply gaussians_length.
        unfold Mechanisms.measure. rewrite map_length. exact H.
      - unfold certain. destruct (list_eq_dec Z.eq_dec (Mechanisms.measure gs T) vs) as [<-|]; auto.
        exfalso. apply H. unfold Mechanisms.measure. apply map_length.
    Qed.

    Lemma at_rho_length q e T vs : length vs <> integers q -> rho_mass _ (at_rho q) e T vs = 0.
    Proof.
      destruct q; unfold AtRho.at_rho; cbn [integers]; intros H; try (apply gaussian_sums_length; exact H);
        try (destruct vs as [|x [|]]; simpl in H |- *; [reflexivity|congruence|reflexivity]).
      - apply independent_length. rewrite !map_length. exact H.
      - apply independent_length. rewrite map_length. intros E. apply H. rewrite E. clear.
        induction fractions as [|[f [b a]] fs IH]; simpl; auto.
    Qed.

    Definition several_at_rho (qs : list (query * positive)) : RhoMechanism (record := record) (list Z).
    Proof.
      refine {| rho_mass := all_answers (fun q => rho_mass _ (at_rho q)) qs |}.
      - intros e T. apply all_distribution; [intros; apply rho_distribution; assumption|apply at_rho_length].
      - intros e T U v. apply all_same. intros. apply rho_same. assumption.
      - intros e T U a He Ha. set (D := INR (distance T U) ^ 2). assert (HD : 0 <= D) by apply pow2_ge_0.
        assert (P : forall V v, 0 <= all_answers (fun q => rho_mass _ (at_rho q)) qs e V v).
        { intros V v. apply (all_distribution (fun q => rho_mass _ (at_rho q)));
            [intros; apply rho_distribution; assumption|apply at_rho_length|exact He]. }
        apply (close_weaken (Order a) Ha (fun _ => sum (fun q => share qs e q * D) qs)); auto.
        + intros _. rewrite (sum_ext _ (fun q => D * share qs e q)) by (intros; ring). rewrite sum_scale.
          pose proof (shares_sum qs e ltac:(lra)). rewrite (Rmult_comm e). apply Rmult_le_compat_l; assumption.
        + apply (all_close (fun q => rho_mass _ (at_rho q)) (fun q s T => rho_distribution _ (at_rho q) s T) (Order a) qs e T U
            (fun s => s * D)); auto.
          * intros s Hs. apply Rmult_le_pos; lra.
          * intros q s Hs. apply (rho_close _ (at_rho q) s T U a Hs Ha).
    Defined.
  End AtRho.

  Theorem several_private qs e T U v : 0 < e -> distance T U = 1%nat ->
    mass _ (several qs) e T v <= mass _ (several qs) e U v * exp e.
  Proof. apply mass_private. Qed.
End Several.
