(** * What a program is shown of a table

    In every state that a run can reach, the scaling factor that a program is
    shown is an integer, and it is true: between two runs with the same trace,
    the table differs by at most that many records per record by which the
    roots differ. *)

Require Import Reals Lra Lia List Arith.
Require Import Fpinq.Probability Fpinq.System Fpinq.Sources Fpinq.Scale Fpinq.General.
Import ListNotations.
Open Scope R_scope.

Section Shown.
  Variable S : System.
  Variables (roots : nat) (budget : vector) (client : Client S) (empty : table S).
  Hypothesis budget_nonneg : forall x, (x < roots)%nat -> 0 <= budget x.
  Notation State := (State S).
  Notation factor s t := (scaling_factor roots (accounts S s) (sensitivity_of S s t)).

  (** ** It is an integer *)

  Definition integral (s : State) : Prop :=
    (forall t x, integer (sensitivity_of S s t x)) /\
    Forall (fun p => forall x, integer (sensitivity p x)) (partitions (accounts S s)).

  Lemma unit_integer x y : integer (unit x y).
  Proof. unfold unit. destruct (Nat.eqb y x); [apply integer_one|apply integer_zero]. Qed.

  Lemma combine_integer n cs : forall vs w, combine n cs vs = Some w -> (forall v, In v vs -> forall x, integer (v x)) ->
    forall x, integer (w x).
  Proof.
    induction cs as [|c cs IH]; intros [|v vs] w H Hv x; simpl in H; try discriminate.
    - injection H as <-. apply integer_zero.
    - destruct (combine n cs vs) as [u|] eqn:E; [|discriminate].
      assert (Hu : integer (u x)) by (apply (IH vs u E); intros; apply Hv; simpl; auto).
      destruct c as [c|].
      + injection H as <-. apply integer_plus; auto. apply integer_times; [apply Hv; simpl; auto|apply integer_nat].
      + destruct (public n v); [|discriminate]. injection H as <-. exact Hu.
  Qed.

  (** A charge leaves the tables that were partitioned as they are. *)
  Lemma settle_sensitivities ps : forall C, map sensitivity (fst (settle ps C)) = map sensitivity ps.
  Proof.
    induction ps as [|p ps IH]; intros C; simpl; auto.
    specialize (IH (fun x => C x + sensitivity p x * (largest C (first p) (parts p) (maximum p) - maximum p))).
    destruct (settle ps _) as [qs C']. simpl in *. rewrite IH. reflexivity.
  Qed.

  Lemma integer_partitions ps qs : map sensitivity qs = map sensitivity ps ->
    Forall (fun p => forall x, integer (sensitivity p x)) ps -> Forall (fun p => forall x, integer (sensitivity p x)) qs.
  Proof.
    intros E H. apply Forall_forall. intros q Hq x.
    assert (K : In (sensitivity q) (map sensitivity ps)) by (rewrite <- E; apply in_map, Hq).
    apply in_map_iff in K. destruct K as (p & <- & Hp). exact (proj1 (Forall_forall _ ps) H p Hp x).
  Qed.

  Lemma step_integral s a : integral s -> integral (snd (step S roots budget s a)).
  Proof.
    intros [HT HP]. destruct a; simpl; try (split; assumption).
    - unfold assign. destruct (combine _ _ _) as [v|] eqn:E; [|split; assumption]. split; [|assumption].
      intros y x. unfold sensitivity_of. simpl. unfold bind. destruct (Nat.eqb y t); [|apply HT].
      apply (combine_integer _ _ _ _ E). intros w Hw. apply in_map_iff in Hw. destruct Hw as (z & <- & _). apply HT.
    - split; simpl.
      + intros y x. unfold sensitivity_of. simpl.
        destruct (Nat.leb dest y && Nat.ltb y (dest + k))%bool; [apply unit_integer|apply HT].
      + constructor; [apply HT|exact HP].
    - destruct (Rlt_dec 0 e); [|split; assumption]. destruct (fits _ _ _); [|split; assumption].
      split; [exact HT|]. simpl. unfold charge.
      pose proof (settle_sensitivities (partitions (accounts S s))
        (fun x => counters (accounts S s) x + sensitivity_of S s t x * e)) as K.
      destruct (settle _ _) as [qs C]. simpl in *. eapply integer_partitions; eassumption.
    - destruct (Rlt_dec 0 e); split; assumption.
  Qed.

  Lemma init_integral D : integral (init S roots empty D).
  Proof.
    split; [|constructor]. intros t x. unfold sensitivity_of. simpl.
    destruct (Nat.ltb t roots); [apply unit_integer|apply integer_zero].
  Qed.

  Lemma reached_integral t : forall p s, integral s -> integral (reached S roots budget client p s t).
  Proof. induction t as [|o t IH]; intros p s H; simpl; auto. apply IH, step_integral, H. Qed.

  Theorem factor_shown_integer D p t v :
    exists n, factor (reached S roots budget client p (init S roots empty D) t) v = INR n.
  Proof.
    destruct (reached_integral t p _ (init_integral D)) as [HT HP].
    destruct (factor_integer roots _ _ (HT v) HP) as [z E]. exists (Z.to_nat z).
    rewrite INR_IZR_INZ, Z2Nat.id; [exact E|]. apply le_IZR. rewrite <- E. apply (largest_bounds _ 0 roots 0).
  Qed.

  (** ** It is true *)

  Theorem factor_shown_true D D' p t v :
    let s := reached S roots budget client p (init S roots empty D) t in
    let s' := reached S roots budget client p (init S roots empty D') t in
    factor s v = factor s' v /\
    INR (distance S (table_of S s v) (table_of S s' v)) <=
      factor s v * dot roots (fun _ => 1) (root_distances S D D').
  Proof.
    intros s s'. destruct (trace_advances S roots budget client (mass_private S) t p _ _ _ (init_sound S roots budget empty budget_nonneg D D')
      (init_similar S roots empty D D')) as (d & H & [KA KT] & Hd & _).
    fold s s' in H, KA, KT. destruct (KT v) as [Kv Kd]. split; [rewrite KA, Kv; reflexivity|].
    eapply Rle_trans; [exact Kd|]. destruct H.
    eapply Rle_trans; [apply (factor_covers roots); eassumption|]. apply Req_le. f_equal.
    apply dot_ext. intros x Hx. split; auto.
  Qed.

  (** One record of one root: at most so many records of the table. *)
  Corollary factor_shown_one D D' p t v x : (x < roots)%nat -> (distance S (D x) (D' x) <= 1)%nat ->
    (forall y, y <> x -> D y = D' y) ->
    INR (distance S (table_of S (reached S roots budget client p (init S roots empty D) t) v)
      (table_of S (reached S roots budget client p (init S roots empty D') t) v)) <=
    factor (reached S roots budget client p (init S roots empty D) t) v.
  Proof.
    intros Hx H1 Hy. destruct (factor_shown_true D D' p t v) as [_ H]. cbv zeta in H. eapply Rle_trans; [exact H|].
    set (f := scaling_factor _ _ _) in *. assert (0 <= f) by apply (largest_bounds _ 0 roots 0).
    assert (K : dot roots (fun _ => 1) (root_distances S D D') <= 1).
    { rewrite (dot_ext roots (fun _ => 1) (fun _ => 1) _ (fun y => unit x y * INR (distance S (D x) (D' x)))).
      - assert (E : forall n (g h : vector), dot n g h = dot n h g) by (induction n; intros; simpl; auto; rewrite IHn; ring).
        rewrite E. rewrite (dot_ext roots _ (fun y => 0 + unit x y * INR (distance S (D x) (D' x))) _ (fun _ => 1))
          by (intros; split; auto; ring).
        rewrite (dot_linear roots (fun _ => 0)), dot_zero, dot_unit by exact Hx.
        apply le_INR in H1. simpl in H1. lra.
      - intros y _. split; auto. unfold root_distances, unit. destruct (Nat.eqb_spec y x) as [->|E]; [ring|].
        rewrite (Hy y E), distance_refl. simpl. ring. }
    nra.
  Qed.
End Shown.
